// Copies, as fast as a kernel can: what every other kernel is measured by.

@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;

@compute @workgroup_size(256)
fn copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    if index < arrayLength(&copied) {
        copied[index] = source[index];
    }
}
