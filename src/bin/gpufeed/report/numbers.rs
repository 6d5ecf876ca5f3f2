//! Every figure in a table, and what its columns say.

use std::fmt::Write;

use gpufeed::measure::report::{COLUMNS, Column, SIZES};

use super::escape::escape;
use super::sent::Row;

/// Every figure of a device as it is in the JSON; `of` names it.
pub fn table(out: &mut String, rows: &[Row<'_>], of: &str) {
    let of = escape(of);
    let _ = write!(
        out,
        "<details><summary>All figures</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All figures of {of}\">\
         <table><thead><tr><th scope=\"col\">strategy</th>"
    );
    let titles = SIZES.iter().map(|size| size.title.to_owned()).chain(COLUMNS.iter().map(Column::heading));
    titles.for_each(|title| _ = write!(out, "<th scope=\"col\">{}</th>", escape(&title)));
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", row.settings().strategy);
        SIZES.iter().for_each(|size| _ = write!(out, "<td>{}</td>", (size.of)(row.settings())));
        COLUMNS.iter().for_each(|column| cell(out, row, column));
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></details>\n");
}

/// The text that people read, and the numbers themselves for programs.
fn cell(out: &mut String, row: &Row<'_>, column: &Column) {
    let keys: Vec<&str> = column.figures.iter().map(|figure| figure.key).collect();
    let values: Vec<String> =
        keys.iter().map(|key| row.figure(key).map_or("null".to_owned(), |value| value.to_string())).collect();
    let text = column.text(&row.configuration.figures);
    let _ =
        write!(out, "<td data-keys=\"{}\" data-values=\"{}\">{}</td>", keys.join(" "), values.join(" "), escape(&text));
}

/// What each column says, once for the whole page.
pub fn explanations(out: &mut String) {
    out.push_str("<details><summary>What the columns say</summary><dl>\n");
    for column in COLUMNS {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(&column.heading()), escape(column.explanation));
    }
    out.push_str("</dl></details>\n");
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};
    use crate::report::sent::Sent;

    #[test]
    fn a_table_has_a_row_a_strategy_and_every_column_is_explained() {
        let rates = [(Strategy::WriteBuffer, 8, 100.0), (Strategy::MappedRing, 8, 200.0)];
        let sent = Sent::of("a.json", &report(vec![device("vulkan:0", &rates)]));
        let (mut page, mut explained) = (String::new(), String::new());
        table(&mut page, &sent.rows(0), "vulkan:0 in <a>.json");
        explanations(&mut explained);
        assert!(page.contains("aria-label=\"All figures of vulkan:0 in &lt;a&gt;.json\""), "{page}");
        assert_eq!(page.matches("scope=\"row\"").count(), 2, "{page}");
        assert!(page.contains("data-keys=\"gb_s\" data-values=\"0.2\">0.20</td>"), "{page}");
        assert_eq!(explained.matches("<dt>").count(), COLUMNS.len());
    }
}
