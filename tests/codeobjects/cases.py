"""The test of each kernel of src/kernels/kernels.def. check-names, which `make test` runs, checks that none is missing."""
import quant_cases
import search_cases
import tensor_cases

TESTS = {**search_cases.TESTS, **tensor_cases.TESTS, **quant_cases.TESTS}
