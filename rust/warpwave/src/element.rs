//! Elements: the Rust types for the library's types.

c_enum! {
    /// The type of a tensor's elements.
    DType(ww_dtype) {
        /// Bytes.
        U8 = WW_U8,
        /// Unsigned integers of 32 bits.
        U32 = WW_U32,
        /// Integers of 16 bits.
        I16 = WW_I16,
        /// Integers of 32 bits.
        I32 = WW_I32,
        /// Integers of 64 bits.
        I64 = WW_I64,
        /// 8 bits of precision, the range of f32.
        BF16 = WW_BF16,
        /// 11 bits of precision, up to 65504.
        F16 = WW_F16,
        /// Single precision.
        F32 = WW_F32,
        /// Double precision.
        F64 = WW_F64,
        /// 1 sign, 4 exponent and 3 mantissa bits; no infinity, the maximum is 448.
        F8E4M3 = WW_F8E4M3,
        /// Signed bytes: can be stored, copied, cast, and multiplied as matrices.
        I8 = WW_I8,
    }
}

c_enum! {
    /// The type of a collection's rows. Rows are scored by their exact values as f32.
    VectorType(ww_vector_type) {
        /// 4 bytes per number.
        F32 = WW_VECTOR_F32,
        /// 2 bytes, 11 bits of precision.
        F16 = WW_VECTOR_F16,
        /// 2 bytes, 8 bits of precision.
        BF16 = WW_VECTOR_BF16,
        /// 1 byte, -128 to 127.
        I8 = WW_VECTOR_I8,
        /// 1 byte, 0 to 255.
        U8 = WW_VECTOR_U8,
    }
}

names!(DType by ww_dtype_name, VectorType by ww_vector_type_name);

/// A Rust type for a tensor's elements.
///
/// # Safety
/// The type has the size and the bits of [`Self::DTYPE`], no padding, and every bit pattern is a value.
pub unsafe trait Element: Copy + Default + Send + Sync + 'static {
    /// The library's type.
    const DTYPE: DType;
}

/// A Rust type for a collection's rows.
///
/// # Safety
/// As [`Element`], with [`Self::VECTOR_TYPE`].
pub unsafe trait VectorElement: Element {
    /// The library's type.
    const VECTOR_TYPE: VectorType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident $(, $vector:ident)?;)*) => {
        $(
            // SAFETY: the types are the same: size, bits, no padding, every pattern a value.
            unsafe impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }
            $(
                // SAFETY: as above.
                unsafe impl VectorElement for $type {
                    const VECTOR_TYPE: VectorType = VectorType::$vector;
                }
            )?
        )*
    };
}

elements! {
    u8 => U8, U8;
    i8 => I8, I8;
    u32 => U32;
    i16 => I16;
    i32 => I32;
    i64 => I64;
    f32 => F32, F32;
    f64 => F64;
}

#[cfg(feature = "half")]
elements! {
    half::f16 => F16, F16;
    half::bf16 => BF16, BF16;
}

/// Returns the memory of elements.
pub(crate) fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding (see Element), so all their bytes are there.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), std::mem::size_of_val(elements)) }
}
