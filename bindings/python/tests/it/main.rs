//! The extension module as cargo built it. What it does is tested from Python, in the files beside.

#[test]
#[cfg(target_os = "linux")]
fn python_finds_the_module_in_the_library() {
    let library = std::env::current_exe().unwrap().with_file_name("lib_native.so");
    let bytes = std::fs::read(library).unwrap();
    let name = b"PyInit__native\0";
    assert!(bytes.windows(name.len()).any(|window| window == name));
}
