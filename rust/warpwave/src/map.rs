//! Maps: all rows of a collection as points in the plane.
use std::slice;

use warpwave_sys as sys;

use crate::callback::{with_progress, Progress};
use crate::collection::Collection;
use crate::error::{call, number, Result};
use crate::handle::Handle;

c_enum! {
    /// Where a map came from.
    MapOrigin(ww_map_origin) {
        /// It existed, and no row has changed.
        Kept = WW_MAP_KEPT,
        /// It existed; some rows were added, removed or replaced.
        Grown = WW_MAP_GROWN,
        /// It was made by this call.
        Made = WW_MAP_MADE,
    }
}

info! {
    /// Description of a map.
    MapInfo(ww_map_info) {
        /// Points.
        count rows: i64,
        /// Points placed at the mean of their neighbours since the map was made.
        count rows_placed: i64,
        /// Neighbours per row.
        count neighbours: i32,
        /// Steps of the layout.
        count steps: i32,
        /// The seed of the random numbers.
        count seed: i64,
        /// Where the map came from.
        value origin: MapOrigin,
        /// Whether the collection keeps it; a store opened read-only does not.
        flag kept,
    }
}

/// How to make a map. Zeros and None choose the settings of the kept map, or the library's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapConfig {
    /// Neighbours per row, 2 to 256; 0: 15 for a new map.
    pub neighbours: usize,
    /// Steps of the layout; 0: 2000 for a new map.
    pub steps: usize,
    /// Another seed gives another map of the same rows; None: 0 for a new map.
    pub seed: Option<i64>,
    /// Lays out all rows again.
    pub remake: bool,
    /// Finds neighbours with this many lists of the index; 0: exactly.
    pub nprobe: usize,
}

/// The points of a collection's rows. Any number of threads may read it.
pub struct Map {
    handle: Handle<sys::ww_map>,
    count: usize,
}

impl Map {
    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the handles of the points' rows.
    pub fn handles(&self) -> &[i64] {
        // SAFETY: the map has this many handles, which live and stay as they are as long as it does.
        unsafe { slice::from_raw_parts(sys::ww_map_handles(self.handle.raw()), self.count) }
    }

    /// Returns x and y of each point, in the order of the handles.
    pub fn points(&self) -> &[[f32; 2]] {
        // SAFETY: as in handles(); a point is two consecutive numbers.
        unsafe { slice::from_raw_parts(sys::ww_map_points(self.handle.raw()).cast(), self.count) }
    }

    /// Describes the map.
    pub fn info(&self) -> Result<MapInfo> {
        let mut info = sys::ww_map_info::default();
        // SAFETY: the map is there and the struct is initialized.
        call(|| unsafe { sys::ww_map_describe(self.handle.raw(), &mut info) }).map(|()| MapInfo(info))
    }
}

impl Collection {
    /// Returns the map of all rows: makes it if there is none, otherwise updates it. The collection keeps it. The same rows and
    /// seed give the same bits on every device. `progress` counts rows searched and steps made.
    ///
    /// ```
    /// use warpwave::{Collection, Device, MapConfig, MapOrigin, Metric, Rows};
    ///
    /// let collection = Collection::new(&Device::open("cpu")?, 2, Metric::L2)?;
    /// let vectors: Vec<f32> = (0..60).map(|i| (i * i % 17) as f32).collect();
    /// collection.add(&Rows::new(2, &vectors))?;
    /// let map = collection.map(&MapConfig { seed: Some(7), ..Default::default() }, None)?;
    /// assert_eq!((map.len(), map.points().len(), map.handles()[5]), (30, 30, 5));
    /// assert_eq!(collection.map(&MapConfig::default(), None)?.info()?.origin(), Some(MapOrigin::Kept));
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn map(&self, config: &MapConfig, progress: Option<Progress<'_>>) -> Result<Map> {
        let neighbours = number(config.neighbours, "neighbours")?;
        let steps = number(config.steps, "steps")?;
        let nprobe = number(config.nprobe, "nprobe")?;
        let handle = with_progress(progress, |told, user| {
            let raw = sys::ww_map_config {
                neighbours,
                steps,
                seed: config.seed.unwrap_or(-1),
                remake: i32::from(config.remake),
                nprobe,
                progress: told,
                progress_user: user,
                ..Default::default()
            };
            // SAFETY: the collection is there; the struct and the callback live until the call returns.
            Handle::make(|map| unsafe { sys::ww_collection_map(self.raw(), &raw, map) })
        })?;
        // SAFETY: the map is there.
        let count = number(unsafe { sys::ww_map_count(handle.raw()) }, "the number of points")?;
        Ok(Map { handle, count })
    }

    /// Drops the collection's map, if there is one.
    pub fn drop_map(&self) -> Result<()> {
        // SAFETY: the collection is there.
        call(|| unsafe { sys::ww_collection_drop_map(self.raw()) })
    }
}
