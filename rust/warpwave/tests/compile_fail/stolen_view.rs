// The tensor behind a view to write through cannot be taken out of it.
// error: E0596
use warpwave::*;
pub fn steal(x: &mut Tensor, other: Tensor) -> Tensor {
    let mut view = x.view_mut();
    std::mem::replace(&mut *view, other)
}
fn main() {}
