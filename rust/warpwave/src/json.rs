//! Payloads and filters as serde_json values: the feature `serde_json`.
use serde_json::Value;

use crate::error::{Error, Result, Status};
use crate::query::Query;
use crate::results::Hit;
use crate::rows::Rows;

impl Hit<'_> {
    /// Returns the payload as a value, if it was fetched and the row has one.
    pub fn payload_value(&self) -> Result<Option<Value>> {
        let parsed = self.payload().map(serde_json::from_str::<Value>).transpose();
        parsed.map_err(|error| Error::new(Status::CorruptFile, format!("the payload of row {}: {error}", self.row())))
    }
}

impl Rows<'_> {
    /// Sets payloads; None for rows without one.
    pub fn payload_values(self, payloads: &[Option<Value>]) -> Self {
        let texts: Vec<Option<String>> = payloads.iter().map(|value| value.as_ref().map(Value::to_string)).collect();
        self.payloads(&texts)
    }
}

impl Query<'_> {
    /// Filters like [`Query::filter`], with a value.
    pub fn filter_value(self, conditions: &Value) -> Self {
        self.filter(conditions.to_string())
    }
}
