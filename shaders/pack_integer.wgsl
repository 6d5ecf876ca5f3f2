// Packs values that fit f16 as they are. Follows normalize.wgsl, where the device lacks the built-in for it.
fn pack_fitting(values: vec4<f32>) -> vec2<u32> {
    let bits = half_bits(values);
    return bits.xz | (bits.yw << vec2<u32>(16u));
}
