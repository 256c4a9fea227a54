//! Tables as directories of Arrow and Parquet files.

use super::support::{V6, mmtwin, ok, report_json, scratch, value};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use std::fs::{self, File};
use std::path::Path;

const HOST: &str = "tests/verdicts/host-wc-loop.tar.zst";

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|e| e.expect("an entry").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn field(row: &Row, column: &str) -> Field {
    let found = row.get_column_iter().find(|(name, _)| *name == column);
    found.unwrap_or_else(|| panic!("no {column}")).1.clone()
}

#[test]
fn every_table_of_the_report_has_a_file_with_its_figures() {
    let scratch = scratch();
    let (parquet, arrow) = (scratch.path().join("parquet"), scratch.path().join("arrow"));
    for (format, to) in [("parquet", &parquet), ("arrow", &arrow)] {
        assert_eq!(
            ok([Path::new("report"), Path::new(HOST), "--format".as_ref(), format.as_ref(), "-o".as_ref(), to]),
            ""
        );
    }
    let report = report_json(Path::new(HOST), [""; 0]);
    let tables =
        report["tables"].as_array().expect("tables").iter().map(|table| table["name"].as_str().expect("a name"));
    let mut expected: Vec<_> =
        tables.chain(["findings", "cross-check"]).map(|name| format!("{name}.parquet")).collect();
    expected.sort();
    assert_eq!(names(&parquet), expected);
    assert_eq!(names(&arrow), expected.iter().map(|name| name.replace("parquet", "arrow")).collect::<Vec<_>>());
    let vmscan = SerializedFileReader::new(File::open(parquet.join("vmscan.parquet")).unwrap()).unwrap();
    let notes = vmscan.metadata().file_metadata().key_value_metadata().expect("metadata");
    assert!(notes.iter().any(|note| note.key == "mmtwin.title"));
    let (mut known, mut unknown) = (0, 0);
    for row in vmscan.into_iter().map(Result::unwrap) {
        let Field::Str(key) = field(&row, "key") else { panic!("{row}") };
        match (field(&row, "value"), field(&row, "na"), value(&report, "vmscan", &key)) {
            (Field::Double(number), Field::Null, Some(same)) if number == same => known += 1,
            (Field::Null, Field::Str(_), None) => unknown += 1,
            other => panic!("{key}: {other:?}"),
        }
    }
    assert!(known > 5, "{known} known, {unknown} not");
}

#[test]
fn a_directory_of_tables_is_replaced_only_with_f_and_only_if_it_is_ours() {
    let scratch = scratch();
    let to = scratch.path().join("tables");
    let report = |options: &[&str]| {
        let first = [Path::new("report"), Path::new(HOST), "-o".as_ref(), &to];
        mmtwin(first.into_iter().map(Path::as_os_str).chain(options.iter().map(AsRef::as_ref)))
    };
    assert_eq!(report(&["--format", "parquet", "--table", "vmscan,findings"]).status, 0);
    assert_eq!(names(&to), ["findings.parquet", "vmscan.parquet"]);
    let again = report(&["--format", "parquet"]);
    assert!(again.status == 1 && again.err.contains("-f replaces it"), "{}", again.err);
    assert_eq!(report(&["--format", "arrow", "-f", "--table", "vmscan"]).status, 0);
    let first = fs::read(to.join("vmscan.arrow")).unwrap();
    assert_eq!(report(&["--format", "arrow", "-f", "--table", "vmscan"]).status, 0);
    assert!(fs::read(to.join("vmscan.arrow")).unwrap() == first, "the same bytes");
    fs::write(to.join("mine.arrow"), "ARROW1").unwrap();
    let foreign = report(&["--format", "arrow", "-f"]);
    assert!(foreign.status == 1 && foreign.err.contains("an Arrow file that mmtwin did not write"), "{}", foreign.err);
    assert_eq!(names(&to), ["mine.arrow", "vmscan.arrow"]);
}

#[test]
fn what_makes_no_directory_is_refused() {
    for (arguments, message) in [
        (&["report", HOST, "--format", "parquet"][..], "write a directory: -o DIR"),
        (&["report", HOST, V6, "--format", "arrow", "-o", "SOME"], "are about one input"),
        (&["report", HOST, "--keys", "--format", "arrow", "-o", "SOME"], "--keys is a list"),
        (&["report", "--fleet", ".", "--format", "arrow", "-o", "SOME"], "--index FILE writes Parquet"),
        (&["report", HOST, "-f"], "-f replaces the file of -o"),
    ] {
        let run = mmtwin(arguments);
        assert!(run.status == 2 && run.err.contains(message), "{arguments:?}: {} {}", run.status, run.err);
    }
}

#[test]
fn a_comparison_and_text_have_outputs_too() {
    let scratch = scratch();
    let (tables, text) = (scratch.path().join("tables"), scratch.path().join("report.txt"));
    ok([Path::new("compare"), Path::new(HOST), Path::new(HOST), "--format=parquet".as_ref(), "-o".as_ref(), &tables]);
    let vmscan = SerializedFileReader::new(File::open(tables.join("vmscan.parquet")).unwrap()).unwrap();
    assert_eq!(vmscan.metadata().file_metadata().num_rows() % 2, 0, "a row for each of two columns");
    assert_eq!(ok([Path::new("report"), Path::new(HOST), "-o".as_ref(), &text]), "");
    assert_eq!(fs::read_to_string(&text).unwrap(), ok(["report", HOST]));
}
