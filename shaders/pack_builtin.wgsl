// Packs values that fit f16 as they are. Follows normalize.wgsl, where the device has the built-in for it.
fn pack_fitting(values: vec4<f32>) -> vec2<u32> {
    return vec2<u32>(pack2x16float(values.xy), pack2x16float(values.zw));
}
