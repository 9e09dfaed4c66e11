//! A quantized matrix product: weights in 4 bits, how far the result is from the product of the floats, and how much memory they take.
//! With a GGUF file and a tensor's name, the weights come from there: `quantized [FILE.gguf TENSOR]`
use warpwave::{Activations, DType, Device, Gguf, Product, QuantType, Quantized, Result, Tensor};

fn main() -> Result<()> {
    let device = Device::auto()?;
    device.seed(1)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let matrix = match arguments.as_slice() {
        [path, name] => {
            let file = Gguf::open(path)?;
            file.load(file.find_tensor(name)?, &device, None)?
        }
        _ => Quantized::from_tensor(QuantType::Q4_0, &Tensor::normal(&device, DType::F32, &[512, 1024], 0.0, 1.0)?)?,
    };
    let info = matrix.info()?;
    println!("{} x {} weights in {} bytes, as f32 {}", info.rows(), info.cols(), info.bytes(), info.rows() * info.cols() * 4);

    let x = Tensor::normal(&device, DType::F32, &[4, info.cols()], 0.0, 1.0)?;
    let coded = matrix.matmul(&x)?;
    let float = matrix.multiply(&x, &Product::new().activations(Activations::Float))?;
    let weights = matrix.dequantize(0, info.rows(), DType::F32)?;
    let exact = x.matmul(&*weights.transpose(0, 1)?)?;
    for (name, y) in [("coded activations", coded), ("float activations", float)] {
        let worst = y.sub(&exact)?.abs()?.reduce(warpwave::Reduce::Max, &[])?.to_vec::<f32>()?[0];
        println!("{name}: shape {:?}, at most {worst:.6} from the product of the decoded weights", y.shape());
    }
    Ok(())
}
