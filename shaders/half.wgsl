// Rounding to f16, for kernels that write it.

// f32 to f16 bits: to nearest, ties to even, with subnormals, overflowing to infinity. Written out because drivers may
// round pack2x16float either way and may flush subnormals.
fn half_bits(values: vec4<f32>) -> vec4<u32> {
    let bits = bitcast<vec4<u32>>(values);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    // Rounds at bit 13 and moves the exponent's bias from 127 to 15.
    let odd = (magnitude >> vec4<u32>(13u)) & vec4<u32>(1u);
    let normal = (magnitude + odd + vec4<u32>(0xfffu) - vec4<u32>(0x38000000u)) >> vec4<u32>(13u);
    // Next to 0.5 a unit in the last place is 2^-24, f16's smallest step: the addition rounds.
    let shifted = bitcast<vec4<f32>>(magnitude) + vec4<f32>(0.5);
    let subnormal = bitcast<vec4<u32>>(shifted) - vec4<u32>(0x3f000000u);
    let finite = min(normal, vec4<u32>(0x7c00u));
    let sign = (bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
    return sign | select(finite, subnormal, magnitude < vec4<u32>(0x38800000u));
}
