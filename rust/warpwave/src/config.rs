//! Configuration and description of a collection.
use warpwave_sys as sys;

use crate::element::VectorType;
use crate::error::{number, Result};
use crate::text::with_text;

c_enum! {
    /// How the distance between vectors is measured.
    Metric(ww_metric) {
        /// The cosine of the angle; larger is nearer.
        Cosine = WW_COSINE,
        /// The euclidean distance; smaller is nearer.
        L2 = WW_L2,
        /// The inner product; larger is nearer.
        Dot = WW_DOT,
    }
}

c_enum! {
    /// 8-bit copies of the rows that make a search faster and change none of its results.
    Screen(ww_screen) {
        /// Takes one more byte per number and 8 bytes per row on the device.
        Int8 = WW_SCREEN_INT8,
        /// Every search computes every score.
        None = WW_SCREEN_NONE,
    }
}

c_enum! {
    /// Where the rows are stored.
    RowPlace(ww_row_place) {
        /// In the device's memory.
        Device = WW_ROWS_DEVICE,
        /// In pinned memory of the host, with only the screen on the device.
        Host = WW_ROWS_HOST,
    }
}

names!(Metric by ww_metric_name, Screen by ww_screen_name, RowPlace by ww_row_place_name);

info! {
    /// Description of a collection.
    CollectionInfo(ww_collection_info) {
        /// Numbers per vector.
        count dim: i32,
        /// The metric.
        value metric: Metric,
        /// Rows that can be found.
        count rows_live: i64,
        /// Removed or replaced rows whose memory compact reclaims.
        count rows_removed: i64,
        /// Rows that fit before more memory is allocated.
        count rows_capacity: i64,
        /// Memory blocks that contain rows.
        count segments: i64,
        /// On the device: rows, norms, masks.
        count bytes_rows: i64,
        /// On the host: ids and the table that finds them.
        count bytes_ids: i64,
        /// On the host.
        count bytes_payloads: i64,
        /// The device's name.
        text device,
        /// On the host: a copy of the vectors, if requested.
        count bytes_host_copy: i64,
        /// The screen.
        value screen: Screen,
        /// On the device: the screen.
        count bytes_screen: i64,
        /// On the host: handles.
        count bytes_handles: i64,
        /// Rows that a mask needs to cover all rows.
        count mask_rows: i64,
        /// How rows are stored.
        value r#type: VectorType,
        /// Where rows are stored.
        value rows: RowPlace,
        /// On the host, pinned: the rows stored there.
        count bytes_rows_host: i64,
        /// The number of rows on each member of a group.
        text members,
    }
}

info! {
    /// What [`Collection::check`](crate::Collection::check) found.
    DamageReport(ww_damage_report) {
        /// Live and removed rows.
        count rows_checked: i64,
        /// How many of the rows are damaged.
        count rows_damaged: i64,
        /// The first damaged row, or -1.
        count first_row: i64,
        /// What is damaged in that row: bits of the C header's `ww_damage`.
        count first_damage: u32,
        /// What is damaged in all rows together.
        count damage: u32,
    }
}

/// Configuration of a new collection.
#[derive(Clone, Debug)]
pub struct CollectionConfig {
    name: String,
    dim: usize,
    metric: Metric,
    keep_host_copy: bool,
    screen: Screen,
    vector_type: VectorType,
    rows: RowPlace,
}

impl CollectionConfig {
    /// Vectors of `dim` f32 numbers on the device, with a screen.
    pub fn new(dim: usize, metric: Metric) -> Self {
        CollectionConfig {
            name: String::new(),
            dim,
            metric,
            keep_host_copy: false,
            screen: Screen::Int8,
            vector_type: VectorType::F32,
            rows: RowPlace::Device,
        }
    }

    /// Sets the name: used in messages, and to find a collection in a store.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Keeps a copy of the vectors on the host, so that a collection whose GPU is lost can move to another device.
    pub fn keep_host_copy(mut self, keep: bool) -> Self {
        self.keep_host_copy = keep;
        self
    }

    /// Chooses the screen.
    pub fn screen(mut self, screen: Screen) -> Self {
        self.screen = screen;
        self
    }

    /// Chooses how rows are stored.
    pub fn vector_type(mut self, vector_type: VectorType) -> Self {
        self.vector_type = vector_type;
        self
    }

    /// Chooses where rows are stored.
    pub fn rows(mut self, place: RowPlace) -> Self {
        self.rows = place;
        self
    }

    pub(crate) fn with_raw<R>(&self, function: impl FnOnce(&sys::ww_collection_config) -> Result<R>) -> Result<R> {
        with_text(&self.name, "the collection's name", |name| {
            let mut raw = sys::ww_collection_config::default();
            raw.name = name;
            raw.dim = number(self.dim, "the dimension")?;
            raw.metric = self.metric.raw();
            raw.keep_host_copy = i32::from(self.keep_host_copy);
            raw.screen = self.screen.raw();
            raw.r#type = self.vector_type.raw();
            raw.rows = self.rows.raw();
            function(&raw)
        })
    }
}
