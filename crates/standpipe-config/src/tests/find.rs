//! Finding the file.

use super::*;
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed when the test ends.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("standpipe-config-{}-{unique}", std::process::id());
        let place = std::env::temp_dir().join(name);
        fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    /// Writes a file with a version.
    fn write(&self, path: &str, version: u64) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("version = {version}\n")).unwrap();
        path
    }

    /// Returns the version that is found with these variables. `@` stands for this directory.
    fn find(
        &self,
        explicit: Option<&Path>,
        variables: &[(&str, &str)],
    ) -> Result<Option<u64>, ConfigError> {
        let env = |name: &str| {
            let value = variables.iter().find(|(known, _)| *known == name)?.1;
            let absolute = |rest: &str| self.0.join(rest).display().to_string();
            Some(value.strip_prefix('@').map_or_else(|| value.to_owned(), absolute))
        };
        file::find(explicit, &env, &self.0.join("etc")).map(|settings| settings.version)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_first_existing_file_counts() {
    let place = Place::new();
    let variables =
        [("STANDPIPE_CONFIG", "@named.toml"), ("XDG_CONFIG_HOME", "@xdg"), ("HOME", "@")];
    assert_eq!(place.find(None, &variables[1..]), Ok(None));
    place.write("etc/standpipe/standpipe.toml", 1);
    assert_eq!(place.find(None, &variables[1..]), Ok(Some(1)));
    place.write(".config/standpipe/standpipe.toml", 2);
    assert_eq!(place.find(None, &variables[2..]), Ok(Some(2)));
    assert_eq!(place.find(None, &variables[1..]), Ok(Some(1)), "$XDG_CONFIG_HOME replaces ~");
    place.write("xdg/standpipe/standpipe.toml", 3);
    assert_eq!(place.find(None, &variables[1..]), Ok(Some(3)));
    place.write("named.toml", 4);
    assert_eq!(place.find(None, &variables), Ok(Some(4)));
    let flag = place.write("flag.toml", 5);
    assert_eq!(place.find(Some(&flag), &variables), Ok(Some(5)));
}

#[test]
fn relative_and_empty_directories_are_ignored() {
    let place = Place::new();
    let variables = [("XDG_CONFIG_HOME", "xdg"), ("HOME", ""), ("STANDPIPE_CONFIG", "")];
    assert_eq!(place.find(None, &variables), Ok(None));
}

#[test]
fn an_explicitly_named_file_must_exist() {
    let place = Place::new();
    let gone = place.0.join("gone.toml");
    let error = place.find(Some(&gone), &[]).unwrap_err().to_string();
    assert!(error.contains("gone.toml: the configuration file does not"), "{error}");
    assert!(error.contains("standpipe config init"), "{error}");
    let error = place.find(None, &[("STANDPIPE_CONFIG", "@gone.toml")]).unwrap_err().to_string();
    assert!(error.contains("named by $STANDPIPE_CONFIG"), "{error}");
    let error = place.find(Some(&place.0), &[]).unwrap_err().to_string();
    assert!(error.contains("is a directory; name the file in it"), "{error}");
}

#[test]
fn binary_and_oversized_files_are_rejected() {
    let place = Place::new();
    let path = place.write("x.toml", 1);
    fs::write(&path, b"version = 1\n# caf\xe9\n").unwrap();
    let error = place.find(Some(&path), &[]).unwrap_err().to_string();
    assert!(error.contains("x.toml:2: the file is not UTF-8; save"), "{error}");
    fs::write(&path, vec![b'\n'; (1 << 20) + 1]).unwrap();
    let error = place.find(Some(&path), &[]).unwrap_err().to_string();
    assert!(error.contains("larger than 1 MiB"), "{error}");
}

#[test]
fn the_modification_time_is_returned() {
    let place = Place::new();
    let path = place.write("x.toml", 1);
    let found = Settings::find(Some(&path), &|_| None).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let written = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    assert_eq!(u128::from(found.written), written);
    assert_eq!(found.origin.as_deref(), Some(path.as_path()));
}

/// Commands that only look at the ledger need no more of a file than its store.
#[test]
fn the_store_of_an_invalid_file_is_found_if_it_is_certain() {
    let url = |text: &str| {
        Settings::store_in(text).map(|found| found.store.unwrap_or_default().url.to_string())
    };
    let broken = "[pool.\"a/b\"]\nparalel = 2\n";
    assert_eq!(url(broken).as_deref(), Some("file"));
    assert_eq!(url(&format!("store = \"redis://h\"\n{broken}")).as_deref(), Some("redis://h"));
    let table = format!("[store]\nurl = \"file:/a\"\n{broken}");
    assert_eq!(url(&table).as_deref(), Some("file:/a"));
    let listen = Settings::store_in(&format!("listen = \"127.0.0.1:9\"\n{broken}")).unwrap();
    assert_eq!(listen.listen, Some("127.0.0.1:9".parse().unwrap()));
    assert!(listen.pools.is_empty() && listen.origin.is_none());
    for uncertain in
        ["stoer = \"redis://h\"", "store = \"redis\"", "store = ", "[store]\nurll = \"file\""]
    {
        assert_eq!(url(&format!("{uncertain}\n{broken}")), None, "{uncertain}");
    }
}

/// A table with a mistake hides neither the store nor what follows it.
#[test]
fn the_store_above_a_table_that_is_not_toml_is_certain() {
    let url = |text: &str| {
        Settings::store_in(text).map(|found| found.store.unwrap_or_default().url.to_string())
    };
    let broken = "[pool.\"a/b\"\nparallel = 2\n";
    assert_eq!(url(broken).as_deref(), Some("file"));
    assert_eq!(url(&format!("store = \"redis://h\"\n{broken}")).as_deref(), Some("redis://h"));
    for uncertain in [
        format!("store = \"redis://h\n{broken}"),
        format!("stoer = \"redis://h\"\n{broken}"),
        format!("{broken}[store]\nurl = \"redis://h\"\n"),
        format!("{broken} [ \"stoer\" ]\nurl = \"redis://h\"\n"),
        format!("nonsense\n{broken}"),
    ] {
        assert_eq!(url(&uncertain), None, "{uncertain}");
    }
}
