"""Old path: records hash files that import it. New files import from `warpsmith`."""

from warpsmith.lab.operator.peer_libraries import VLLM as VLLM
from warpsmith.lab.operator.peer_libraries import vllm as vllm
