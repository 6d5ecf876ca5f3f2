//! `compare --sweep`, and what its report keeps.

use std::fs;

use serde_json::Value;

use crate::data;
use crate::support::run;

fn rows(report: &Value) -> &Vec<Value> {
    report["devices"][0]["configurations"].as_array().expect("rows")
}

#[test]
fn samples_of_several_sizes_are_rows_of_one_device_and_every_latency_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, csv, html) = (path("a.json"), path("a.csv"), path("a.html"));
    let sizes = ["--sweep", "sample=8,16x12", "--sweep", "batch=2,4"];
    let files = ["--json", &json, "--csv", &csv, "--html", &html];
    // Few images, of which no machine makes hundreds of megabytes first.
    let images = data::folder_of("png");
    let args = [&["compare", images.arg(), "--device", "host", "--time", "2"], &sizes[..], &files[..]].concat();
    let told = run(&args).ended_with(0).on_one_line();
    assert!(told.contains("a.json tells:") && told.contains("No host name, user name or path."), "{told}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).expect("written")).expect("JSON");
    assert_eq!(report["data"]["layout"], "u8 images of 8x8x3, u8 images of 16x12x3");
    let of = |row: &Value| (row["settings"]["sample_bytes"].as_u64(), row["settings"]["batch_size"].as_u64());
    let found: Vec<_> = rows(&report).iter().map(of).collect();
    assert_eq!(found, [(192, 2), (192, 4), (576, 2), (576, 4)].map(|(sample, batch)| (Some(sample), Some(batch))));
    for row in rows(&report) {
        let sum = |list: &Value, key: &str| -> u64 {
            list.as_array().expect("a list").iter().map(|entry| entry[key].as_u64().expect("a count")).sum()
        };
        assert_eq!(sum(&row["latency"], "count"), sum(&row["rounds"], "batches"), "{row}");
        let (p50, longest) =
            (row["figures"]["latency_p50_ms"].as_f64(), row["latency"].as_array().expect("a list").last());
        assert!(p50 <= longest.and_then(|bucket| bucket["up_to_us"].as_f64()).map(|us| us / 1e3), "{row}");
        assert!(row["figures"]["times_memcpy"].as_f64().is_some(), "each size has a memcpy of its own: {row}");
    }
    let csv = fs::read_to_string(csv).expect("written");
    assert!(csv.contains(",sample_bytes,batch_size,") && csv.contains(",memcpy,576,4,"), "{csv}");
    let html = fs::read_to_string(html).expect("written");
    for part in ["GB/s over sample bytes", "Samples a second over batch", "how many batches took so long"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_size_that_samples_cannot_have_is_refused_with_the_options_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("points.npy");
    let values = [7; 40 * 6];
    gpufeed::source::write_npy(&data, gpufeed::source::NpyType::U8, &[40, 6], &values).expect("written");
    let data = data.to_str().expect("UTF-8");
    let of_file = run(&["compare", data, "--device", "host", "--sweep", "sample=8"]).ended_with(1).stderr;
    assert!(of_file.contains("--sweep sample") && of_file.contains("points.npy"), "{of_file}");
    for option in [["--size", "8x8"], ["--baseline", data]] {
        let args = [&["compare", "--device", "host", "--sweep", "sample=8"], &option[..]].concat();
        let refused = run(&args).ended_with(2).stderr;
        assert!(refused.contains("--sweep sample") && refused.contains(option[0]), "{refused}");
    }
    run(&["compare", "--sweep", "compute=1", "--compute", "2"]).ended_with(2);
    run(&["compare", "--sweep", "sample=0"]).ended_with(2);
}
