//! The extension module.
use pyo3::prelude::*;

#[pyclass(frozen)]
struct Thing {
    a: u32,
}
#[pymethods]
impl Thing {
    fn get(&self, #[allow(unused)] py: Python<'_>) -> u32 {
        self.a
    }
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::Thing;
}
