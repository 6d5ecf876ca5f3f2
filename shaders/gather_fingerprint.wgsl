// The checksums of samples in imported memory. Follows fingerprint.wgsl and gather.wgsl.

@compute @workgroup_size(GROUP)
fn gather_fingerprint(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let sample = job(group.z * groups.y + group.y);
    let words = select(0u, (bytes + 3u) / 4u, sample.present);
    var sum = vec2<u32>(0u);
    for (var turn = 0u; turn < steps; turn++) {
        let position = (group.x * steps + turn) * GROUP + local;
        if position < words {
            sum += term(trimmed(word_at(sample.start + 4u * position), position), position);
        }
    }
    add_sums(sum, sample.present, sample.place, local);
}
