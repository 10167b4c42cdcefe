"""Short names group a kernel's variants; the family is what the name tells; what ranges are steps."""

from __future__ import annotations

import pytest

from warpsmith.profiling.trace.names import STEP, copy_kind, kernel_family, short_kernel_name

AT = "at::native::"
ADD = f"void {AT}vectorized_elementwise_kernel<4, {AT}CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, float)"
COPY = (
    f"void {AT}elementwise_kernel<128, 2, {AT}gpu_kernel_impl_nocast<{AT}direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(at::Iterator&)>(int)"
)
MUL = (
    f"void {AT}vectorized_elementwise_kernel<4, {AT}BinaryFunctor<float, float, float, "
    f"{AT}binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int)"
)
MEAN = f"void {AT}reduce_kernel<512, 1, {AT}ReduceOp<float, {AT}MeanOps<float, float>, unsigned int> >(int)"
ADAM = (
    f"void {AT}(anonymous namespace)::multi_tensor_apply_kernel<{AT}(anonymous namespace)::TensorListMetadata<4>, "
    f"{AT}(anonymous namespace)::FusedAdamMathFunctor<float, 4> >(int)"
)
CUTLASS = "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_tn_align8>(Params)"
FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128>, true>(Flash_fwd_params)"
FLASH_3 = "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::Mainloop<2> > > >(Params)"
GEMV = "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(Params)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(
    ("name", "brief", "kind"),
    [
        (ADD, "elementwise CUDAFunctor_add", "elementwise"),
        (COPY, "elementwise direct_copy_kernel_cuda", "elementwise"),
        (MUL, "elementwise MulFunctor", "elementwise"),
        (MEAN, "reduce MeanOps", "reduction"),
        (ADAM, "foreach FusedAdamMathFunctor", "optimizer"),
        (CUTLASS, "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16", "matrix-product"),
        (FLASH, "flash_fwd_kernel", "attention"),
        (FLASH_3, "cutlass FlashAttnFwdSm90", "attention"),
        (GEMV, "gemvx::kernel", "matrix-product"),
        (NCCL, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "communication"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm", "matrix-product"),
        ("nvjet_tst_128x64_64x8_1x2_h_bz_TNT", "nvjet_tst", "matrix-product"),
        ("Cijk_Alik_Bljk_SB_Bias_MT64x16x32_MI16", "Cijk_Alik_Bljk_SB_Bias", "matrix-product"),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0", "elementwise"),
        ("triton_red_fused_sum_1", "triton_red_fused_sum_1", "reduction"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD", "copy"),
        ("CopyHostToDevice", "Memcpy HtoD", "copy"),
        ("Memset (Device)", "Memset", "memset"),
        ("aten::addmm", "aten::addmm", "matrix-product"),
        ("aten::add_", "aten::add_", "elementwise"),
        ("aten::address", "aten::address", "other"),
        ("aten::normal_", "aten::normal_", "elementwise"),
        ("aten::native_layer_norm", "aten::native_layer_norm", "normalisation"),
        ("my_kernel", "my_kernel", "other"),
    ],
)
def test_names(name: str, brief: str, kind: str):
    assert (short_kernel_name(name), kernel_family(name)) == (brief, kind)


@pytest.mark.parametrize(
    ("name", "kind", "pageable"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", True),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", False),
        ("Memcpy DtoD (Device -> Device)", "DtoD", None),
        ("CopyDeviceToHost", "DtoH", None),
    ],
)
def test_copies(name: str, kind: str, pageable: bool | None):
    assert copy_kind(name) == (kind, pageable)


@pytest.mark.parametrize("name", ["step", "step 3", "Step_12", "train_step", "training step", "ProfilerStep#7"])
def test_ranges_that_are_steps(name: str):
    assert STEP.fullmatch(name)


@pytest.mark.parametrize("name", ["Optimizer.step#SGD.step", "steps", "a step", "step of the optimizer"])
def test_ranges_that_are_not(name: str):
    assert not STEP.fullmatch(name)
