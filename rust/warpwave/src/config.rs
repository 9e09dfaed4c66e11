//! What a collection is made as, and what it says of itself.
use warpwave_sys as sys;

use crate::element::VectorType;
use crate::error::{number, Result};
use crate::text::with_text;

c_enum! {
    /// How near two vectors are.
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
        /// A byte a number and 8 bytes a row more on the device.
        Int8 = WW_SCREEN_INT8,
        /// Every search computes every score.
        None = WW_SCREEN_NONE,
    }
}

c_enum! {
    /// Where the rows themselves are.
    RowPlace(ww_row_place) {
        /// In the device's memory.
        Device = WW_ROWS_DEVICE,
        /// In pinned memory of the host, with only the screen on the device.
        Host = WW_ROWS_HOST,
    }
}

names!(Metric by ww_metric_name, Screen by ww_screen_name, RowPlace by ww_row_place_name);

info! {
    /// What a collection is and takes.
    CollectionInfo(ww_collection_info) {
        /// Numbers in a vector.
        count dim: i32,
        /// How near vectors are.
        value metric: Metric,
        /// Rows that can be found.
        count rows_live: i64,
        /// Rows that were removed or replaced and whose memory compact gives back.
        count rows_removed: i64,
        /// Rows that fit before memory is allocated.
        count rows_capacity: i64,
        /// Blocks of memory that rows are in.
        count segments: i64,
        /// On the device: rows, norms, masks.
        count bytes_rows: i64,
        /// On the host: ids and the table that finds them.
        count bytes_ids: i64,
        /// On the host.
        count bytes_payloads: i64,
        /// The device's name.
        text device,
        /// On the host: the vectors again, if that was asked for.
        count bytes_host_copy: i64,
        /// The screen.
        value screen: Screen,
        /// On the device: the screen.
        count bytes_screen: i64,
        /// On the host: handles.
        count bytes_handles: i64,
        /// Rows that a mask has to cover to speak of them all.
        count mask_rows: i64,
        /// What rows are stored as.
        value r#type: VectorType,
        /// Where they are.
        value rows: RowPlace,
        /// On the host, pinned: rows that are there.
        count bytes_rows_host: i64,
        /// The rows that each member of a group has.
        text members,
    }
}

info! {
    /// What [`Collection::check`](crate::Collection::check) found.
    DamageReport(ww_damage_report) {
        /// Live and removed rows.
        count rows_checked: i64,
        /// How many of them are damaged.
        count rows_damaged: i64,
        /// The first that is, -1 if none is.
        count first_row: i64,
        /// What of that row is: bits of the C header's `ww_damage`.
        count first_damage: u32,
        /// The same of all rows.
        count damage: u32,
    }
}

/// How a collection is made.
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
    /// Vectors of `dim` numbers in f32 on the device, with a screen.
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

    /// A name: for messages, and in a store what the collection is found by.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Keeps the vectors on the host as well, so that a collection whose GPU is lost can move to another device.
    pub fn keep_host_copy(mut self, keep: bool) -> Self {
        self.keep_host_copy = keep;
        self
    }

    /// With a screen or without.
    pub fn screen(mut self, screen: Screen) -> Self {
        self.screen = screen;
        self
    }

    /// What rows are stored as.
    pub fn vector_type(mut self, vector_type: VectorType) -> Self {
        self.vector_type = vector_type;
        self
    }

    /// Where they are.
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
