"""Features of configurations, as named arrays.

Knobs, hidden features of the compiler, and the lowered loops (flattened, and as AutoTVM's context relations).
"""

from hilt.schedule.features.features import Features as Features
from hilt.schedule.features.features import knob_feature_names as knob_feature_names
from hilt.schedule.features.features import knob_features as knob_features
from hilt.schedule.features.hidden import TABLE_5 as TABLE_5
from hilt.schedule.features.hidden import hidden_features as hidden_features
from hilt.schedule.features.loop_context import LoopContext as LoopContext
from hilt.schedule.features.loop_context import ast_features as ast_features
from hilt.schedule.features.loop_context import context_relation_features as context_relation_features
from hilt.schedule.features.loop_context import loop_context as loop_context
