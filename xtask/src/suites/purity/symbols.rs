//! The built core calls nothing of the standard library.
//!
//! The library's symbols are read with `nm`; where there is none, its bytes are searched for the
//! same names.

use std::path::Path;

use crate::context::Context;
use crate::process::BUILD;

/// Builds the core as people get it and looks at its symbols.
pub(super) fn check(context: &Context) -> Result<Result<(), String>, String> {
    let mut cargo = context.cargo(["build", "--release", "--package", "standpipe-core"]);
    let built = context.run(&mut cargo, BUILD)?;
    if !built.ok {
        return Ok(Err(built.output));
    }
    let library = context.target.join("release/libstandpipe_core.rlib");
    let found = match names(context, &library) {
        Some(names) => foreign(names.lines()),
        None => foreign_bytes(&library)?,
    };
    if found.is_empty() {
        return Ok(Ok(()));
    }
    let list = found.join("\n  ");
    Ok(Err(format!("{} uses the standard library:\n  {list}", library.display())))
}

/// What `nm` prints, if there is one that understands the file.
fn names(context: &Context, library: &Path) -> Option<String> {
    let mut nm = context.program("nm");
    let listed = context.run_apart(nm.arg("-A").arg(library), BUILD).ok()?;
    // It complains about the archive's first member, which is not an object, and ends well.
    (listed.ok && !listed.data.is_empty()).then_some(listed.data)
}

fn foreign<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names = lines.filter_map(|line| line.split_whitespace().next_back());
    names.filter(|name| is_std(name)).map(str::to_owned).collect()
}

fn foreign_bytes(library: &Path) -> Result<Vec<String>, String> {
    let bytes = std::fs::read(library)
        .map_err(|error| format!("cannot read {}: {error}", library.display()))?;
    let printable = |b: &u8| !(b.is_ascii_alphanumeric() || b"_$.".contains(b));
    let words = bytes.split(printable).filter(|word| word.len() > 4);
    let words: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Ok(foreign(words.iter().map(String::as_str)))
}

/// Whether a mangled name is one of the standard library's: `_ZN3std…` in the older scheme, and in
/// the newer one a crate root `Cs…_3std` anywhere in the name.
fn is_std(name: &str) -> bool {
    if let Some(older) = name.strip_prefix("_ZN") {
        let within = ["$LT$std..", "..std.."].iter().any(|path| older.contains(path));
        return within || older.starts_with("3std");
    }
    name.starts_with("_R") && crate_roots(name).any(|root| root == "3std")
}

/// The length and name that follow each `Cs<number>_`.
fn crate_roots(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices("Cs").filter_map(|(at, _)| {
        let (hash, rest) = name[at + 2..].split_once('_')?;
        let is_number = hash.bytes().all(|b| b.is_ascii_alphanumeric());
        is_number.then(|| rest.get(..4)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_standard_library_are_recognised_in_both_schemes() {
        assert!(is_std("_ZN3std4time7Instant3now17h0123456789abcdefE"));
        assert!(is_std("_ZN60_$LT$std..io..Error$u20$as$u20$core..fmt..Debug$GT$3fmt17h01E"));
        assert!(is_std("_RNvMNtCs1a2B3c_3std4timeNtB2_7Instant3now"));
        assert!(is_std("_RINvNtCsaaa_4core3ptr13drop_in_placeNtNtCs9z_3std2io5ErrorE"));
    }

    #[test]
    fn others_are_not() {
        assert!(!is_std("_ZN4core9panicking5panic17h0123456789abcdefE"));
        assert!(!is_std("_RNvNtCs1a2B3c_4core9panicking5panic"));
        assert!(!is_std("_RNvNtCs1a2B3c_14standpipe_core5state3std"));
        assert!(!is_std("__rust_alloc"));
    }

    #[test]
    fn the_last_word_of_a_line_is_the_name() {
        let lines = "a.rlib:b.o:                 U _ZN3std3env3var17h01E\n\na.rlib:b.o: U memcpy";
        assert_eq!(foreign(lines.lines()), ["_ZN3std3env3var17h01E"]);
    }
}
