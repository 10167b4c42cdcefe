"""Old path of the libraries that peers call, which definitions on disk import."""

from warpsmith.lab.operator.peer_libraries import VLLM as VLLM
from warpsmith.lab.operator.peer_libraries import deep_gemm as deep_gemm
from warpsmith.lab.operator.peer_libraries import vllm as vllm
