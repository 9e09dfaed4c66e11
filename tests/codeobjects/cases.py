"""Which test each kernel of src/kernels/kernels.def has. None may be forgotten: check-names, which `make test` runs."""
import quant_cases
import search_cases
import tensor_cases

TESTS = {**search_cases.TESTS, **tensor_cases.TESTS, **quant_cases.TESTS}
