solution.o:     file format elf64-x86-64
Disassembly of section .text:
0000000000000000 <run>:
run():
/project/v1.cpp:7
   0:	lea    0x8(%rsp),%r10
   5:	and    $0xffffffffffffffe0,%rsp
   9:	push   -0x8(%r10)
   d:	push   %rbp
   e:	mov    %rsp,%rbp
  11:	push   %r14
  13:	push   %r13
  15:	push   %r12
  17:	push   %r10
  19:	push   %rbx
  1a:	sub    $0x8,%rsp
float const* warpsmith::Tensor::data<float>() const:
/library/warpsmith.hpp:73
inlined by /project/v1.cpp:8 (run)
  1e:	cmpl   $0x1,0x1c(%rdi)
  22:	jne    249 <run+0x249>
float* warpsmith::Tensor::data<float>():
/library/warpsmith.hpp:69
inlined by /project/v1.cpp:9 (run)
  28:	cmpl   $0x1,0x1c(%rsi)
float const* warpsmith::Tensor::data<float>() const:
/library/warpsmith.hpp:74
inlined by /project/v1.cpp:8 (run)
  2c:	mov    (%rdi),%r14
float* warpsmith::Tensor::data<float>():
/library/warpsmith.hpp:69
inlined by /project/v1.cpp:9 (run)
  2f:	jne    22a <run+0x22a>
warpsmith::Tensor::size(int) const:
/library/warpsmith.hpp:78
inlined by /project/v1.cpp:10 (run)
  35:	mov    0x8(%rdi),%rax
float* warpsmith::Tensor::data<float>():
/library/warpsmith.hpp:70
inlined by /project/v1.cpp:9 (run)
  39:	mov    (%rsi),%r13
run():
/project/v1.cpp:10
  3c:	mov    0x8(%rax),%r12
  40:	imul   (%rax),%r12
/project/v1.cpp:12
  44:	test   %r12,%r12
  47:	jle    1ab <run+0x1ab>
  4d:	lea    -0x1(%r12),%rax
  52:	cmp    $0x6,%rax
  56:	jbe    216 <run+0x216>
  5c:	mov    %r12,%rdx
  5f:	mov    %r14,%rax
/project/v1.cpp:11
  62:	vxorps %xmm1,%xmm1,%xmm1
  66:	shr    $0x3,%rdx
  6a:	shl    $0x5,%rdx
  6e:	add    %r14,%rdx
  71:	nopl   0x0(%rax)
/project/v1.cpp:5 (discriminator 3)
inlined by /project/v1.cpp:12 (run)
  78:	vmovups (%rax),%ymm4
square():
/project/v1.cpp:5 (discriminator 3)
inlined by /project/v1.cpp:12 (run)
  7c:	add    $0x20,%rax
  80:	vmulps %ymm4,%ymm4,%ymm0
  84:	vaddss %xmm1,%xmm0,%xmm1
  88:	vshufps $0x55,%xmm0,%xmm0,%xmm3
  8d:	vshufps $0xff,%xmm0,%xmm0,%xmm2
  92:	vaddss %xmm1,%xmm3,%xmm3
  96:	vunpckhps %xmm0,%xmm0,%xmm1
  9a:	vextractf128 $0x1,%ymm0,%xmm0
  a0:	vaddss %xmm3,%xmm1,%xmm1
  a4:	vaddss %xmm1,%xmm2,%xmm2
  a8:	vshufps $0x55,%xmm0,%xmm0,%xmm1
  ad:	vaddss %xmm2,%xmm0,%xmm2
  b1:	vaddss %xmm2,%xmm1,%xmm1
  b5:	vunpckhps %xmm0,%xmm0,%xmm2
run():
/project/v1.cpp:12 (discriminator 3)
  b9:	vshufps $0xff,%xmm0,%xmm0,%xmm0
  be:	vaddss %xmm2,%xmm1,%xmm1
  c2:	vaddss %xmm0,%xmm1,%xmm1
  c6:	cmp    %rax,%rdx
  c9:	jne    78 <run+0x78>
  cb:	mov    %r12,%rax
  ce:	and    $0xfffffffffffffff8,%rax
  d2:	mov    %rax,%rcx
  d5:	cmp    %rax,%r12
  d8:	je     200 <run+0x200>
  de:	mov    %r12,%rdx
  e1:	sub    %rcx,%rdx
  e4:	lea    -0x1(%rdx),%rsi
  e8:	cmp    $0x2,%rsi
  ec:	jbe    125 <run+0x125>
/project/v1.cpp:12
  ee:	vmovups (%r14,%rcx,4),%xmm0
  f4:	mov    %rdx,%rcx
  f7:	and    $0xfffffffffffffffc,%rcx
square():
/project/v1.cpp:5
inlined by /project/v1.cpp:12 (run)
  fb:	vmulps %xmm0,%xmm0,%xmm0
  ff:	add    %rcx,%rax
 102:	and    $0x3,%edx
 105:	vaddss %xmm0,%xmm1,%xmm1
 109:	vshufps $0x55,%xmm0,%xmm0,%xmm2
 10e:	vaddss %xmm2,%xmm1,%xmm1
 112:	vunpckhps %xmm0,%xmm0,%xmm2
run():
/project/v1.cpp:12
 116:	vshufps $0xff,%xmm0,%xmm0,%xmm0
 11b:	vaddss %xmm2,%xmm1,%xmm1
 11f:	vaddss %xmm0,%xmm1,%xmm1
 123:	je     162 <run+0x162>
 125:	vmovss (%r14,%rax,4),%xmm0
 12b:	lea    0x1(%rax),%rcx
 12f:	lea    0x0(,%rax,4),%rdx
 137:	vfmadd231ss %xmm0,%xmm0,%xmm1
 13c:	cmp    %rcx,%r12
 13f:	jle    162 <run+0x162>
 141:	vmovss 0x4(%r14,%rdx,1),%xmm0
 148:	add    $0x2,%rax
 14c:	vfmadd231ss %xmm0,%xmm0,%xmm1
 151:	cmp    %rax,%r12
 154:	jle    162 <run+0x162>
 156:	vmovss 0x8(%r14,%rdx,1),%xmm0
 15d:	vfmadd231ss %xmm0,%xmm0,%xmm1
/project/v1.cpp:13
 162:	vmovss 0x0(%rip),%xmm0        # 16a <run+0x16a>
			166: R_X86_64_PC32	.LC5-0x4
 16a:	vdivss %xmm1,%xmm0,%xmm1
_mm256_set1_ps(float):
/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h:1321
inlined by /project/v1.cpp:13 (run)
 16e:	vbroadcastss %xmm1,%ymm1
run():
/project/v1.cpp:14
 173:	cmp    $0x7,%r12
 177:	jle    223 <run+0x223>
 17d:	lea    -0x8(%r12),%rcx
 182:	mov    %r13,%rdx
 185:	xor    %eax,%eax
 187:	and    $0xfffffffffffffff8,%rcx
 18b:	add    $0x8,%rcx
 18f:	nop
_mm256_mul_ps(float __vector(8), float __vector(8)):
/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h:320 (discriminator 3)
inlined by /project/v1.cpp:14 (run)
 190:	vmulps (%r14,%rax,4),%ymm1,%ymm0
run():
/project/v1.cpp:14 (discriminator 3)
 196:	add    $0x8,%rax
 19a:	add    $0x20,%rdx
_mm256_stream_ps(float*, float __vector(8)):
/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h:1029 (discriminator 3)
inlined by /project/v1.cpp:14 (run)
 19e:	vmovntps %ymm0,-0x20(%rdx)
run():
/project/v1.cpp:14 (discriminator 3)
 1a3:	cmp    %rcx,%rax
 1a6:	jne    190 <run+0x190>
 1a8:	vzeroupper
/project/v1.cpp:15
 1ab:	mov    %r12,%rdx
 1ae:	mov    %r12,%rbx
 1b1:	sar    $0x3f,%rdx
 1b5:	shr    $0x3d,%rdx
 1b9:	lea    (%r12,%rdx,1),%rax
 1bd:	and    $0x7,%eax
 1c0:	sub    %rdx,%rax
 1c3:	sub    %rax,%rbx
 1c6:	cmp    %rbx,%r12
 1c9:	jle    1eb <run+0x1eb>
 1cb:	nopl   0x0(%rax,%rax,1)
std::exp(float):
/usr/include/c++/12/cmath:223 (discriminator 3)
inlined by /project/v1.cpp:15 (run)
 1d0:	vmovss (%r14,%rbx,4),%xmm0
 1d6:	call   1db <run+0x1db>
			1d7: R_X86_64_PLT32	expf-0x4
run():
/project/v1.cpp:15 (discriminator 3)
 1db:	vmovss %xmm0,0x0(%r13,%rbx,4)
 1e2:	add    $0x1,%rbx
 1e6:	cmp    %rbx,%r12
 1e9:	jne    1d0 <run+0x1d0>
/project/v1.cpp:16
 1eb:	add    $0x8,%rsp
 1ef:	pop    %rbx
 1f0:	pop    %r10
 1f2:	pop    %r12
 1f4:	pop    %r13
 1f6:	pop    %r14
 1f8:	pop    %rbp
 1f9:	lea    -0x8(%r10),%rsp
 1fd:	ret
 1fe:	xchg   %ax,%ax
/project/v1.cpp:13
 200:	vmovss 0x0(%rip),%xmm0        # 208 <run+0x208>
			204: R_X86_64_PC32	.LC5-0x4
 208:	vdivss %xmm1,%xmm0,%xmm1
_mm256_set1_ps(float):
/usr/lib/gcc/x86_64-linux-gnu/12/include/avxintrin.h:1321
inlined by /project/v1.cpp:13 (run)
 20c:	vbroadcastss %xmm1,%ymm1
 211:	jmp    17d <run+0x17d>
run():
/project/v1.cpp:12
 216:	xor    %ecx,%ecx
 218:	xor    %eax,%eax
/project/v1.cpp:11
 21a:	vxorps %xmm1,%xmm1,%xmm1
 21e:	jmp    de <run+0xde>
/project/v1.cpp:15
 223:	xor    %ebx,%ebx
 225:	vzeroupper
 228:	jmp    1d0 <run+0x1d0>
float* warpsmith::Tensor::data<float>():
/library/warpsmith.hpp:69
inlined by /project/v1.cpp:9 (run)
 22a:	lea    0x0(%rip),%rcx        # 231 <run+0x231>
			22d: R_X86_64_PC32	.LC4-0x4
 231:	mov    $0x45,%edx
 236:	lea    0x0(%rip),%rsi        # 23d <run+0x23d>
			239: R_X86_64_PC32	.LC2-0x4
 23d:	lea    0x0(%rip),%rdi        # 244 <run+0x244>
			240: R_X86_64_PC32	.LC3-0x4
 244:	call   249 <run+0x249>
			245: R_X86_64_PLT32	__assert_fail-0x4
float const* warpsmith::Tensor::data<float>() const:
/library/warpsmith.hpp:73
inlined by /project/v1.cpp:8 (run)
 249:	lea    0x0(%rip),%rcx        # 250 <run+0x250>
			24c: R_X86_64_PC32	.LC1-0x4
 250:	mov    $0x49,%edx
 255:	lea    0x0(%rip),%rsi        # 25c <run+0x25c>
			258: R_X86_64_PC32	.LC2-0x4
 25c:	lea    0x0(%rip),%rdi        # 263 <run+0x263>
			25f: R_X86_64_PC32	.LC3-0x4
 263:	call   268 <.LC4+0x1f0>
			264: R_X86_64_PLT32	__assert_fail-0x4
