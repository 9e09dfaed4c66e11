//! Devices.
use std::ffi::CStr;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use warpwave_sys as sys;

use crate::error::{call, Result};
use crate::handle::Handle;
use crate::text::with_text;

info! {
    /// Description of a device.
    DeviceInfo(ww_device_info) {
        /// The name that [`Device::open`] takes: `"cpu"`, `"cuda:0"`.
        text id,
        /// `"NVIDIA H200"`
        text name,
        /// `"NVIDIA"`, `"AMD"`, `"Intel"`, `"ARM"`
        text vendor,
        /// `"cpu"`, `"cuda"`, `"rocm"`
        text backend,
        /// `"sm_90"`, `"gfx90a"`, `"x86-64"`
        text arch,
        /// The instruction sets that a CPU uses.
        text instruction_sets,
        /// Where the device's code came from.
        text kernels,
        /// Empty for a CPU.
        text driver_version,
        /// `"0000:c1:00.0"`, or empty.
        text pci_address,
        /// The index among the devices of its backend.
        count index: i32,
        /// Lanes that run in lockstep; 1 for a CPU.
        count wave_size: i32,
        /// Cores, multiprocessors or compute units in use.
        count compute_units: i32,
        /// 1 for a CPU.
        count max_threads_per_block: i32,
        /// Shared memory per block.
        count shared_bytes_per_block: i64,
        /// Total memory.
        count memory_total_bytes: i64,
        /// Free memory.
        count memory_free_bytes: i64,
        /// Total minus free: used by any process.
        count memory_used_bytes: i64,
        /// Members of a group; 0 for a single device.
        count member_count: i32,
        /// Each member's share of the rows of a group.
        text members,
        /// Why each device before it did not open, for one that was opened as `"auto"`.
        text passed_over,
    }
}

info! {
    /// Memory usage of a device.
    MemoryInfo(ww_memory_info) {
        /// Total memory.
        count total_bytes: i64,
        /// Free memory, as reported by the driver or the operating system.
        count free_bytes: i64,
        /// Memory in buffers that this device has allocated.
        count ours_bytes: i64,
        /// Memory kept for reuse.
        count pooled_bytes: i64,
        /// The maximum of `ours_bytes` so far.
        count peak_bytes: i64,
    }
}

info! {
    /// A member of a group of devices.
    MemberInfo(ww_member_info) {
        /// Its name.
        text id,
        /// Its share of new rows, from 0 to 1.
        count share: f64,
        /// Rows that it has room for, over all collections on the group.
        count rows_capacity: i64,
        /// Bytes of these rows.
        count bytes: i64,
        /// Whether the group continues without it.
        flag dropped,
    }
}

/// An open device. Clones are the same device. It closes when the last clone and everything on it are gone: collections,
/// tensors and models keep their device open. Any number of threads may use it. Operations refuse tensors of two openings of
/// one device: clone it instead.
///
/// ```
/// use warpwave::Device;
///
/// let device = Device::open("cpu")?;
/// assert_eq!(device.info()?.backend(), "cpu");
/// # Ok::<(), warpwave::Error>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<Handle<sys::ww_device>>);

impl Device {
    /// Opens a device by name: `"cpu"`, `"cuda:0"`, `"rocm:1"`, a group such as `"cuda:0+cpu"` or `"all"`, or `"auto"`. An
    /// unknown name is [`Status::NoDevice`](crate::Status::NoDevice), whose message lists the available devices.
    pub fn open(name: &str) -> Result<Self> {
        // SAFETY: the text ends with a NUL and lives until the call returns.
        with_text(name, "the device's name", |name| Handle::make(|device| unsafe { sys::ww_device_open(name, device) }))
            .map(|handle| Device(Arc::new(handle)))
    }

    /// Opens the first device that works, in this order: CUDA devices, ROCm devices, the CPU. The environment variable
    /// `WARPWAVE_DEVICE` overrides this.
    pub fn auto() -> Result<Self> {
        // SAFETY: NULL means "auto".
        Handle::make(|device| unsafe { sys::ww_device_open(ptr::null(), device) }).map(|handle| Device(Arc::new(handle)))
    }

    /// Describes the available devices. A missing driver is not an error.
    ///
    /// ```
    /// for device in warpwave::Device::list()? {
    ///     println!("{}: {}", device.id(), device.name());
    /// }
    /// # Ok::<(), warpwave::Error>(())
    /// ```
    pub fn list() -> Result<Vec<DeviceInfo>> {
        // SAFETY: `infos` has room for `capacity` structs, each initialized.
        let list = listed(|infos, capacity, count| unsafe { sys::ww_devices(infos, capacity, count) })?;
        Ok(list.into_iter().map(DeviceInfo).collect())
    }

    /// Returns the reason why a backend (`"cuda"`, `"rocm"`) has no device; None if it has one.
    pub fn backend_absence(backend: &str) -> Result<Option<String>> {
        with_text(backend, "the backend", |backend| {
            // SAFETY: returns a text of this thread that ends with a NUL and is copied here.
            let why = unsafe { CStr::from_ptr(sys::ww_backend_absence(backend)) };
            Ok((!why.to_bytes().is_empty()).then(|| why.to_string_lossy().into_owned()))
        })
    }

    /// Describes the device.
    pub fn info(&self) -> Result<DeviceInfo> {
        let mut info = sys::ww_device_info::default();
        // SAFETY: the device is open and the struct is initialized.
        call(|| unsafe { sys::ww_device_describe(self.raw(), &mut info) }).map(|()| DeviceInfo(info))
    }

    /// Returns the memory usage of the device.
    pub fn memory(&self) -> Result<MemoryInfo> {
        let mut info = sys::ww_memory_info::default();
        // SAFETY: the device is open and the struct is initialized.
        call(|| unsafe { sys::ww_device_memory(self.raw(), &mut info) }).map(|()| MemoryInfo(info))
    }

    /// Returns pooled memory to the driver or the operating system. May wait for work in progress.
    pub fn trim(&self) -> Result<()> {
        // SAFETY: the device is open.
        call(|| unsafe { sys::ww_device_trim(self.raw()) })
    }

    /// Returns the members of a group; a single device is its own only member.
    pub fn members(&self) -> Result<Vec<MemberInfo>> {
        // SAFETY: the device is open; `infos` has room for `capacity` structs, each initialized.
        let list = listed(|infos, capacity, count| unsafe { sys::ww_device_members(self.raw(), infos, capacity, count) })?;
        Ok(list.into_iter().map(MemberInfo).collect())
    }

    /// Continues a group without a member.
    pub fn drop_member(&self, member: &str) -> Result<()> {
        // SAFETY: the device is open and the text ends with a NUL.
        with_text(member, "the member's name", |member| call(|| unsafe { sys::ww_device_drop(self.raw(), member) }))
    }

    /// Waits until all queued tensor operations on the device are done.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the device is open.
        call(|| unsafe { sys::ww_device_synchronize(self.raw()) })
    }

    /// Sets the seed of random tensors: the same calls after the same seed give the same bits on every device.
    pub fn seed(&self, seed: u64) -> Result<()> {
        // SAFETY: the device is open.
        call(|| unsafe { sys::ww_device_seed(self.raw(), seed) })
    }

    #[inline]
    pub(crate) fn raw(&self) -> *mut sys::ww_device {
        self.0.raw()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = self.info();
        write!(out, "Device({})", info.as_ref().map_or("?", DeviceInfo::id))
    }
}

/// Returns a list that a call fills in, after asking for its length. A list that grew in between is cut.
fn listed<T: Clone + Default>(call_for: impl Fn(*mut T, usize, *mut usize) -> sys::ww_status) -> Result<Vec<T>> {
    let mut count = 0;
    call(|| call_for(ptr::null_mut(), 0, &mut count))?;
    let mut list = vec![T::default(); count];
    call(|| call_for(list.as_mut_ptr(), list.len(), &mut count))?;
    list.truncate(count);
    Ok(list)
}

/// Returns the version of the loaded C library.
pub fn version() -> &'static str {
    // SAFETY: returns a static text that ends with a NUL.
    unsafe { CStr::from_ptr(sys::ww_version()) }.to_str().unwrap_or("")
}
