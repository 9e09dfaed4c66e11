//! A double of the crate half: two types of 16 bits, by their bits only. rust/Cargo.toml says why.

macro_rules! of_bits {
    ($name:ident) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(transparent)]
        pub struct $name(u16);
        impl $name {
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }
            pub const fn to_bits(self) -> u16 {
                self.0
            }
        }
    };
}
of_bits!(f16);
of_bits!(bf16);
