"""What FlyDSL traces: types of arguments, and LDS that launches ask for."""

from __future__ import annotations

from warpsmith.languages.flydsl.assembly_text import argument_types, launched_lds

MODULE = """
    gpu.func @first_0(%arg0: !fly.memref<bf16, global, (?,?):(?{i64},1)>, %arg1: i32) kernel attributes {a = 1} {
    gpu.func @helper(%arg0: f32) {
    gpu.func @second_1(%arg0: !fly.memref<f32, global, ?:1, align<16>>) kernel attributes {
  func.func @go(%arg0: i32) {
    %c1024_i32 = arith.constant 1024 : i32
    %1 = gpu.launch_func @kernels::@first_0 blocks in (%a)  dynamic_shared_memory_size %c1024_i32 args()
    %2 = gpu.launch_func @kernels::@second_1 blocks in (%a)  dynamic_shared_memory_size %9 args()
"""


def test_types_of_arguments_and_lds_come_from_what_was_traced():
    assert argument_types(MODULE) == {"first_0": "bf16 (?,?):(?{i64},1), i32", "second_1": "f32 ?:1"}
    assert launched_lds(MODULE) == {"first_0": 1024}
