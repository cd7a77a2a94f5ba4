"""From a workload and a configuration to a program: spaces, checks, lowering, features."""
