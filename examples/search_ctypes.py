#!/usr/bin/env python3
"""The C interface without a binding: Python's ctypes declares three structs up to the last field that is used, and calls the library. The same steps serve
any language with a foreign function interface. WARPWAVE_LIBRARY=build/libwarpwave.so names a library that is not installed."""
import ctypes
import os
lib = ctypes.CDLL(os.environ.get("WARPWAVE_LIBRARY", "libwarpwave.so.0.2"))
lib.ww_error_message.restype = lib.ww_results_id.restype = ctypes.c_char_p
lib.ww_results_count.restype, lib.ww_results_scores.restype = ctypes.c_int64, ctypes.POINTER(ctypes.c_float)

class Config(ctypes.Structure):          # ww_collection_config
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("dim", ctypes.c_int32), ("metric", ctypes.c_int),
                ("keep_host_copy", ctypes.c_int32), ("screen", ctypes.c_int)]

class Rows(ctypes.Structure):            # ww_rows
    _fields_ = [("struct_size", ctypes.c_size_t), ("count", ctypes.c_int64), ("dim", ctypes.c_int32),
                ("vectors", ctypes.POINTER(ctypes.c_float)), ("row_stride", ctypes.c_int64),
                ("ids", ctypes.POINTER(ctypes.c_char_p)), ("payloads", ctypes.POINTER(ctypes.c_char_p)),
                ("progress", ctypes.c_void_p), ("progress_user", ctypes.c_void_p)]

class Query(ctypes.Structure):           # ww_query, up to the last field that is used
    _fields_ = [("struct_size", ctypes.c_size_t), ("queries", ctypes.POINTER(ctypes.c_float)), ("query_count", ctypes.c_int64),
                ("query_stride", ctypes.c_int64), ("query_tensor", ctypes.c_void_p), ("dim", ctypes.c_int32), ("mode", ctypes.c_int),
                ("k", ctypes.c_int32), ("bound", ctypes.c_float), ("limit", ctypes.c_int64), ("mask", ctypes.c_void_p),
                ("mask_rows", ctypes.c_int64), ("where", ctypes.c_char_p), ("parameters", ctypes.c_void_p),
                ("parameter_count", ctypes.c_int64), ("filter", ctypes.c_char_p), ("fetch", ctypes.c_uint32)]

def check(status):
    if status != 0:
        raise RuntimeError(lib.ww_error_message().decode())

def made(kind, **fields):                # every default is zero; the size says which fields there are
    value = kind(struct_size=ctypes.sizeof(kind))
    for name, field in fields.items():
        setattr(value, name, field)
    return value

vectors = (ctypes.c_float * 6)(1, 0, 0, 1, 0.8, 0.6)
query = (ctypes.c_float * 2)(0.9, 0.1)
ids = (ctypes.c_char_p * 3)(b"east", b"north", b"northeast")
device, collection, results = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(lib.ww_device_open(b"auto", ctypes.byref(device)))
check(lib.ww_collection_create(device, ctypes.byref(made(Config, dim=2, metric=0)), ctypes.byref(collection)))
check(lib.ww_collection_add(collection, ctypes.byref(made(Rows, count=3, dim=2, vectors=vectors, ids=ids))))
check(lib.ww_collection_query(collection, ctypes.byref(made(Query, queries=query, query_count=1, dim=2, k=2, fetch=1)), ctypes.byref(results)))
for i in range(lib.ww_results_count(results, ctypes.c_int64(0))):
    score = lib.ww_results_scores(results, ctypes.c_int64(0))[i]
    print(lib.ww_results_id(results, ctypes.c_int64(0), ctypes.c_int64(i)).decode(), f"{score:.4f}")
lib.ww_results_destroy(results)
lib.ww_collection_destroy(collection)
lib.ww_device_close(device)
