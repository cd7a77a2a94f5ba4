"""SSH to a board: host keys, sessions, deploying the agent and speaking its protocol."""
