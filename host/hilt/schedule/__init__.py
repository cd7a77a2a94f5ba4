"""Lower a workload and a configuration to a program: spaces, checks, lowering, features."""

from hilt.schedule.bounds import giga_operations_per_second as giga_operations_per_second
from hilt.schedule.catalogue import load_convolution as load_convolution
from hilt.schedule.catalogue import load_workload as load_workload
from hilt.schedule.catalogue import workload_names as workload_names
from hilt.schedule.checks import Reason as Reason
from hilt.schedule.checks import Rejected as Rejected
from hilt.schedule.checks import hazard_distance as hazard_distance
from hilt.schedule.features import knob_features as knob_features
from hilt.schedule.operator import Workload as Workload
from hilt.schedule.operator import bound_cycles as bound_cycles
from hilt.schedule.operator import convolution as convolution
from hilt.schedule.operator import lower as lower
from hilt.schedule.operator import lower_many as lower_many
from hilt.schedule.operator import make_tensors as make_tensors
from hilt.schedule.operator import output_elements as output_elements
from hilt.schedule.operator import space_for as space_for
from hilt.schedule.operator import verdicts as verdicts
from hilt.schedule.operator import workload_of as workload_of
from hilt.schedule.space import ConfigurationError as ConfigurationError
from hilt.schedule.space import Space as Space
from hilt.schedule.tensors import Tensors as Tensors
from hilt.schedule.workload import Conv2d as Conv2d
from hilt.schedule.workload import WorkloadError as WorkloadError
