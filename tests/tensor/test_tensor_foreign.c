/* Memory of others as tensors and ours for others, by addresses and by DLPack: nothing is copied, owners are told once and
 * last, streams wait for each other, and what does not fit is refused.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <warpwave/dlpack.h>

#include "emulated/emulated.h"
#include "gpu/device.h"
#include "support/devices.h"
#include "support/tensors.h"

_Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, byte_offset) == 40, "DLPack");
_Static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56, "DLPack");
_Static_assert(sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLManagedTensorVersioned, flags) == 24 &&
                   offsetof(DLManagedTensorVersioned, dl_tensor) == 32,
               "DLPack");

static void says(const char *text)
{
    if (!strstr(ww_error_message(), text))
        fail_msg("'%s' does not say '%s'", ww_error_message(), text);
}

static void count_call(void *owner)
{
    ++*(int *)owner;
}

/* Six floats, 1 to 6, that belong to a tensor and are looked at by their address. */
static const float six[6] = {1, 2, 3, 4, 5, 6};

static ww_tensor make_six(ww_device *device)
{
    ww_tensor x = {0};
    CHECK_OK(ww_tensor_from_host(device, WW_F32, 2, (int64_t[]){2, 3}, six, &x));
    return x;
}

static ww_foreign foreign_of(void *data, int *released)
{
    ww_foreign foreign = ww_foreign_default();
    foreign.data = data;
    foreign.dtype = WW_F32;
    foreign.layout = ww_layout_contiguous(2, (int64_t[]){2, 3});
    foreign.release = count_call;
    foreign.owner = released;
    return foreign;
}

static bool is_emulated(ww_device *device)
{
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(device, &info));
    return strcmp(info.backend, "emulator") == 0;
}

/* ---- addresses ----------------------------------------------------------------------------------------------------------- */

static void wrapped_memory_is_used_in_place(void **state)
{
    int released = 0;
    ww_tensor owner = make_six(*state), x = {0}, view = {0}, sum = {0};
    void *address = NULL, *again = NULL;
    float got[6];
    CHECK_OK(ww_tensor_data(&owner, &address));
    const ww_foreign foreign = foreign_of(address, &released);
    CHECK_OK(ww_tensor_wrap(*state, &foreign, &x));
    CHECK_OK(ww_tensor_data(&x, &again));
    assert_ptr_equal(again, address);
    CHECK_OK(ww_tensor_transpose(&x, 0, 1, &view));
    CHECK_OK(ww_tensor_binary(WW_ADD, &x, &x, &sum));
    CHECK_OK(ww_tensor_affine(&x, 10.0, 0.0, &x)); /* which the owner sees */
    CHECK_OK(ww_tensor_to_host(&owner, got));
    for (int i = 0; i < 6; i++)
        assert_true(got[i] == 10 * six[i]);
    CHECK_OK(ww_tensor_to_host(&sum, got));
    for (int i = 0; i < 6; i++)
        assert_true(got[i] == 2 * six[i]);
    ww_tensor_release(&x);
    assert_int_equal(released, 0);
    ww_tensor_release(&view);
    assert_int_equal(released, 1);
    ww_tensor_release(&sum);
    ww_tensor_release(&owner);
    assert_int_equal(released, 1);
}

/* In the emulator nothing that was queued is done before somebody waits: the owner looks at the memory without waiting. */
static const float *looked_at;
static float seen_at_release;

static void look(void *owner)
{
    ++*(int *)owner;
    seen_at_release = looked_at[5];
}

static void an_owner_is_notified_when_all_work_is_done(void **state)
{
    int released = 0;
    ww_tensor owner = make_six(*state), x = {0};
    void *address = NULL;
    CHECK_OK(ww_tensor_data(&owner, &address));
    ww_foreign foreign = foreign_of(address, &released);
    looked_at = address;
    foreign.release = device_is_quick_gpu(*state) ? count_call : look;
    CHECK_OK(ww_tensor_wrap(*state, &foreign, &x));
    CHECK_OK(ww_tensor_affine(&x, 2.0, 1.0, &x));
    ww_tensor_release(&x);
    assert_int_equal(released, 1);
    if (!device_is_quick_gpu(*state))
        assert_true(seen_at_release == 13.0f);
    ww_tensor_release(&owner);
}

static void memory_that_cannot_be_wrapped_is_refused(void **state)
{
    int released = 0;
    ww_tensor owner = make_six(*state), x = {0};
    void *address = NULL;
    CHECK_OK(ww_tensor_data(&owner, &address));
    ww_foreign foreign = foreign_of(address, &released);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(NULL, &foreign, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, NULL, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &owner));
    says("release");
    foreign.data = (char *)address + 2;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &x));
    says("aligned");
    foreign.data = NULL;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &x));
    foreign.data = address;
    foreign.dtype = (ww_dtype)77;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &x));
    foreign.dtype = WW_F32;
    foreign.layout.strides[0] = -3;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &x));
    says("negative");
    foreign.layout.strides[0] = INT64_MAX;
    CHECK_FAILS(WW_OUT_OF_RANGE, ww_tensor_wrap(*state, &foreign, &x));
    foreign.layout.rank = 9;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_wrap(*state, &foreign, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_data(&owner, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_stream(*state, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_wait_stream(NULL, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_device_signal_stream(NULL, NULL));
    assert_null(x.storage);
    assert_int_equal(released, 0);
    ww_tensor_release(&owner);
}

static void read_only_memory_is_not_written(void **state)
{
    int released = 0;
    const float number = 3;
    const int64_t zero = 0;
    ww_tensor owner = make_six(*state), x = {0}, other = make_six(*state), ids = {0}, out = {0};
    void *address = NULL;
    CHECK_OK(ww_tensor_data(&owner, &address));
    ww_foreign foreign = foreign_of(address, &released);
    foreign.read_only = 1;
    CHECK_OK(ww_tensor_wrap(*state, &foreign, &x));
    CHECK_OK(ww_tensor_from_host(*state, WW_I64, 2, (int64_t[]){1, 1}, &zero, &ids));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_unary(WW_ABS, &other, &x));
    says("only be read");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_zeros(*state, WW_F32, 2, (int64_t[]){2, 3}, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_const_set(&x, &number));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_write(&x, six));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy_strided(&other, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_copy2d(other.storage, x.storage, 1, 1, 1, 1, 0, 0));
    ww_tensor one = other;
    one.layout.shape[0] = one.layout.shape[1] = 1;
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_scatter(&x, &ids, &one, 0));
    CHECK_OK(ww_tensor_unary(WW_NEG, &x, &out));
    float got[6];
    CHECK_OK(ww_tensor_to_host(&owner, got));
    assert_memory_equal(got, six, sizeof six);
    DLManagedTensor *plain = NULL;
    DLManagedTensorVersioned *versioned = NULL;
    CHECK_FAILS(WW_UNSUPPORTED, ww_tensor_to_dlpack_unversioned(&x, WW_STREAM_NONE, &plain));
    CHECK_OK(ww_tensor_to_dlpack(&x, WW_STREAM_NONE, &versioned));
    assert_int_equal(versioned->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    ww_tensor back = {0};
    CHECK_OK(ww_tensor_from_dlpack(*state, versioned, WW_STREAM_NONE, &back));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_const_set(&back, &number));
    ww_tensor_release(&back);
    ww_tensor_release(&x);
    assert_int_equal(released, 1);
    ww_tensor_release(&ids);
    ww_tensor_release(&out);
    ww_tensor_release(&other);
    ww_tensor_release(&owner);
}

/* ---- DLPack -------------------------------------------------------------------------------------------------------------- */

static void every_type_goes_there_and_back(void **state)
{
    test_random random = {21};
    for (int type = 0; type < TEST_TYPES; type++)
        for (int style = 0; style < 3; style++) {
            const int64_t shape[3] = {2, 3, 5};
            test_tensor x = test_tensor_make(*state, &random, (ww_dtype)type, 3, shape, (test_layout)style);
            DLManagedTensorVersioned *versioned = NULL;
            DLManagedTensor *plain = NULL;
            ww_tensor one = {0}, other = {0};
            void *address = NULL;
            CHECK_OK(ww_tensor_data(&x.tensor, &address));
            CHECK_OK(ww_tensor_to_dlpack(&x.tensor, WW_STREAM_NONE, &versioned));
            CHECK_OK(ww_tensor_to_dlpack_unversioned(&x.tensor, WW_STREAM_NONE, &plain));
            assert_int_equal(versioned->version.major, 1);
            assert_int_equal(versioned->flags, 0);
            assert_int_equal(versioned->dl_tensor.ndim, 3);
            assert_ptr_equal((char *)versioned->dl_tensor.data + versioned->dl_tensor.byte_offset, address);
            assert_memory_equal(versioned->dl_tensor.shape, shape, sizeof shape);
            assert_memory_equal(versioned->dl_tensor.strides, x.tensor.layout.strides, sizeof shape);
            assert_int_equal(versioned->dl_tensor.dtype.bits, 8 * ww_dtype_bytes((ww_dtype)type));
            CHECK_OK(ww_tensor_from_dlpack(*state, versioned, WW_STREAM_NONE, &one));
            CHECK_OK(ww_tensor_from_dlpack_unversioned(*state, plain, WW_STREAM_NONE, &other));
            assert_int_equal(ww_tensor_dtype(&one), type);
            uint8_t *bytes = malloc(30 * 8), *again = malloc(30 * 8);
            CHECK_OK(ww_tensor_to_host(&one, bytes));
            CHECK_OK(ww_tensor_to_host(&other, again));
            for (int64_t i = 0; i < 30; i++)
                assert_int_equal(bits_of(bytes, (ww_dtype)type, i), test_tensor_bits(&x, i));
            assert_memory_equal(bytes, again, 30 * ww_dtype_bytes((ww_dtype)type));
            free(bytes);
            free(again);
            test_tensor_free(&x);
            ww_tensor_release(&one);
            ww_tensor_release(&other);
        }
}

/* A tensor of another's making on the device. */
typedef struct producer {
    DLManagedTensorVersioned managed;
    int64_t shape[9], strides[9];
    int deleted;
} producer;

static void delete_producer(DLManagedTensorVersioned *self)
{
    ((producer *)self->manager_ctx)->deleted++;
}

/* Like what is exported of x, which must live on. */
static void produce(const ww_tensor *x, producer *p)
{
    DLManagedTensorVersioned *made = NULL;
    CHECK_OK(ww_tensor_to_dlpack(x, WW_STREAM_NONE, &made));
    *p = (producer){.managed = *made};
    memcpy(p->shape, made->dl_tensor.shape, (size_t)made->dl_tensor.ndim * sizeof *p->shape);
    memcpy(p->strides, made->dl_tensor.strides, (size_t)made->dl_tensor.ndim * sizeof *p->strides);
    p->managed.dl_tensor.shape = p->shape;
    p->managed.dl_tensor.strides = p->strides;
    p->managed.manager_ctx = p;
    p->managed.deleter = delete_producer;
    made->deleter(made);
}

static void offsets_and_missing_strides_are_honoured(void **state)
{
    ww_tensor x = make_six(*state), seen = {0};
    producer p;
    float got[6];
    produce(&x, &p);
    p.managed.dl_tensor.strides = NULL;
    p.managed.dl_tensor.byte_offset = 4;
    p.shape[1] = 2;
    CHECK_OK(ww_tensor_from_dlpack(*state, &p.managed, WW_STREAM_NONE, &seen));
    CHECK_OK(ww_tensor_to_host(&seen, got));
    assert_memory_equal(got, six + 1, 4 * sizeof *six);
    ww_tensor_release(&seen);
    assert_int_equal(p.deleted, 1);
    produce(&x, &p);
    p.managed.dl_tensor.dtype = (DLDataType){kDLBool, 8, 1};
    CHECK_OK(ww_tensor_from_dlpack(*state, &p.managed, WW_STREAM_NONE, &seen));
    assert_int_equal(ww_tensor_dtype(&seen), WW_U8);
    ww_tensor_release(&seen);
    produce(&x, &p);
    p.managed.deleter = NULL; /* which is allowed */
    p.shape[0] = 0;
    p.managed.dl_tensor.data = NULL;
    CHECK_OK(ww_tensor_from_dlpack(*state, &p.managed, WW_STREAM_NONE, &seen));
    assert_int_equal(ww_layout_elements(&seen.layout), 0);
    ww_tensor_release(&seen);
    ww_tensor_release(&x);
}

#define REFUSED(status, text)                                                                                                  \
    do {                                                                                                                       \
        CHECK_FAILS(status, ww_tensor_from_dlpack(*state, &p.managed, WW_STREAM_NONE, &seen));                                 \
        says(text);                                                                                                            \
        assert_null(seen.storage);                                                                                             \
        assert_int_equal(p.deleted, 0);                                                                                        \
        produce(&x, &p);                                                                                                       \
    } while (0)

static void imports_that_do_not_fit_are_refused(void **state)
{
    ww_tensor x = make_six(*state), seen = {0};
    producer p;
    produce(&x, &p);
    p.managed.version.major = 2;
    REFUSED(WW_UNSUPPORTED, "DLPack 2.");
    p.managed.dl_tensor.device.device_type = (DLDeviceType)4;
    REFUSED(WW_INVALID_ARGUMENT, "device 4:");
    p.managed.dl_tensor.device = (DLDevice){kDLCUDA, 99};
    REFUSED(WW_INVALID_ARGUMENT, "2:99");
    p.managed.dl_tensor.dtype.lanes = 4;
    REFUSED(WW_UNSUPPORTED, "4 lanes");
    p.managed.dl_tensor.dtype = (DLDataType){kDLUInt, 16, 1};
    REFUSED(WW_UNSUPPORTED, "16 bits");
    p.managed.dl_tensor.dtype = (DLDataType){kDLComplex, 64, 1};
    REFUSED(WW_UNSUPPORTED, "type 5");
    p.strides[1] = -1;
    REFUSED(WW_UNSUPPORTED, "[3, -1]");
    p.managed.dl_tensor.byte_offset = 2;
    REFUSED(WW_INVALID_ARGUMENT, "aligned");
    p.managed.dl_tensor.ndim = 9;
    REFUSED(WW_INVALID_ARGUMENT, "rank 9");
    p.managed.dl_tensor.shape = NULL;
    REFUSED(WW_INVALID_ARGUMENT, "no shape");
    p.shape[0] = -2;
    REFUSED(WW_INVALID_ARGUMENT, "-2");
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack(NULL, &p.managed, WW_STREAM_NONE, &seen));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack(*state, NULL, WW_STREAM_NONE, &seen));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack(*state, &p.managed, WW_STREAM_NONE, &x));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack_unversioned(*state, NULL, WW_STREAM_NONE, &seen));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_to_dlpack(&x, WW_STREAM_NONE, NULL));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_to_dlpack_unversioned(NULL, WW_STREAM_NONE, NULL));
    ww_tensor_release(&x);
}

/* Devices of the vendors by their names, whose memory nobody here can make. */
static void host_memory_of_other_kinds_is_the_hosts(void **state)
{
    float numbers[6];
    int64_t shape[2] = {2, 3};
    ww_tensor seen = {0};
    ww_device_info info = ww_device_info_default();
    CHECK_OK(ww_device_describe(*state, &info));
    DLManagedTensorVersioned managed = {.version = {1, 0}, .dl_tensor = {.data = numbers, .ndim = 2, .shape = shape}};
    managed.dl_tensor.dtype = (DLDataType){kDLFloat, 32, 1};
    memcpy(numbers, six, sizeof six);
    static const DLDeviceType kinds[] = {kDLCPU, kDLCUDAHost, kDLROCMHost};
    for (size_t k = 0; k < 3; k++) {
        managed.dl_tensor.device = (DLDevice){kinds[k], 0};
        if (strcmp(info.backend, "cpu") == 0) {
            CHECK_OK(ww_tensor_from_dlpack(*state, &managed, NULL, &seen));
            CHECK_OK(ww_tensor_unary(WW_NEG, &seen, &seen));
            ww_tensor_release(&seen);
            assert_true(numbers[5] == (k % 2 ? six[5] : -six[5]));
        } else if (strcmp(info.backend, "emulator") == 0) {
            CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack(*state, &managed, NULL, &seen));
        }
    }
    managed.dl_tensor.device = (DLDevice){kDLCUDAManaged, 0};
    if (strcmp(info.backend, "cuda") != 0)
        CHECK_FAILS(WW_INVALID_ARGUMENT, ww_tensor_from_dlpack(*state, &managed, NULL, &seen));
}

/* ---- who lives how long -------------------------------------------------------------------------------------------------- */

static void *delete_elsewhere(void *managed)
{
    DLManagedTensorVersioned *of = managed;
    of->deleter(of);
    return NULL;
}

static void an_export_outlives_everything_else(void **state)
{
    ww_device_info info = ww_device_info_default();
    ww_device *own = NULL;
    DLManagedTensorVersioned *managed = NULL;
    pthread_t thread;
    CHECK_OK(ww_device_describe(*state, &info));
    CHECK_OK(ww_device_open(info.id, &own));
    ww_tensor x = make_six(own);
    CHECK_OK(ww_tensor_affine(&x, 3.0, 0.0, &x));
    CHECK_OK(ww_tensor_to_dlpack(&x, WW_STREAM_NONE, &managed));
    CHECK_OK(ww_device_synchronize(own));
    ww_tensor_release(&x);
    ww_device_close(own);
    if (!device_is_quick_gpu(*state))
        assert_true(((const float *)managed->dl_tensor.data)[5] == 18.0f);
    assert_int_equal(pthread_create(&thread, NULL, delete_elsewhere, managed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Memory whose address other libraries know is not reused: they may still use it. */
static void exported_memory_does_not_go_to_the_pool(void **state)
{
    ww_device_info info = ww_device_info_default();
    ww_memory_info memory = ww_memory_info_default();
    ww_tensor x = make_six(*state);
    void *address = NULL;
    CHECK_OK(ww_device_describe(*state, &info));
    CHECK_OK(ww_device_trim(*state));
    CHECK_OK(ww_tensor_data(&x, &address));
    ww_tensor_release(&x);
    CHECK_OK(ww_device_memory(*state, &memory));
    assert_int_equal(memory.pooled_bytes, 0);
    assert_int_equal(memory.ours_bytes, 0);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------- */

/* What Python has for a capsule, as far as its destructor looks. */
typedef struct capsule {
    const char *name;
    void *pointer;
} capsule;

static int capsule_has_name(void *of, const char *name)
{
    return strcmp(((capsule *)of)->name, name) == 0;
}

static void *capsule_pointer(void *of, const char *name)
{
    return capsule_has_name(of, name) ? ((capsule *)of)->pointer : NULL;
}

static void a_capsule_deletes_an_export_that_nobody_has_imported(void **state)
{
    ww_memory_info before = ww_memory_info_default(), after = before;
    ww_tensor x = make_six(*state);
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_dlpack_capsules(NULL, capsule_pointer));
    CHECK_FAILS(WW_INVALID_ARGUMENT, ww_dlpack_capsules(capsule_has_name, NULL));
    CHECK_OK(ww_dlpack_capsules(capsule_has_name, capsule_pointer));
    struct DLManagedTensorVersioned *versioned;
    struct DLManagedTensor *plain;
    CHECK_OK(ww_tensor_to_dlpack(&x, WW_STREAM_NONE, &versioned));
    CHECK_OK(ww_tensor_to_dlpack_unversioned(&x, WW_STREAM_NONE, &plain));
    ww_tensor_release(&x);
    CHECK_OK(ww_device_memory(*state, &before));
    ww_dlpack_capsule_destroy(NULL);
    ww_dlpack_capsule_destroy(&(capsule){"used_dltensor_versioned", versioned}); /* not ours any more */
    CHECK_OK(ww_device_memory(*state, &after));
    assert_int_equal(after.ours_bytes, before.ours_bytes);
    ww_dlpack_capsule_destroy(&(capsule){"dltensor_versioned", versioned});
    ww_dlpack_capsule_destroy(&(capsule){"dltensor", plain});
    CHECK_OK(ww_device_memory(*state, &after));
    assert_true(after.ours_bytes < before.ours_bytes);
}

/* In the emulator a stream does nothing before something waits for it, so unfinished work shows. */
static void streams_wait_for_each_other(void **state)
{
    if (!is_emulated(*state)) {
        void *stream = NULL;
        CHECK_OK(ww_device_stream(*state, &stream));
        CHECK_OK(ww_device_wait_stream(*state, WW_STREAM_NONE));
        CHECK_OK(ww_device_signal_stream(*state, WW_STREAM_NONE));
        return;
    }
    gpu_device *device = (gpu_device *)*state;
    driver_context previous = NULL;
    driver_stream other = NULL;
    float *host = NULL;
    float got[6];
    int released = 0;
    ww_tensor owner = make_six(*state), x = {0}, y = {0};
    void *address = NULL, *made = NULL, *ours = NULL;
    CHECK_OK(ww_tensor_data(&owner, &address));
    CHECK_OK(ww_device_synchronize(*state));
    CHECK_OK(ww_device_stream(*state, &ours));
    assert_non_null(ours);
    CHECK_OK(gpu_enter(device, &previous));
    assert_int_equal(emulated_driver.stream_create(&other), 0);
    assert_int_equal(emulated_driver.pinned_alloc(sizeof got, (void **)&host), 0);
    assert_int_equal(emulated_driver.fill32(other, address, 0x40e00000u, 6), 0); /* 7.0f, at some time */
    assert_true(*(const float *)address == 1.0f);
    ww_foreign foreign = foreign_of(address, &released);
    foreign.stream = other;
    CHECK_OK(ww_tensor_wrap(*state, &foreign, &x));
    CHECK_OK(ww_tensor_affine(&x, 2.0, 0.0, &y)); /* queued as well, behind it */
    CHECK_OK(ww_tensor_data(&y, &made));
    assert_int_equal(emulated_driver.copy_out(other, host, made, sizeof got), 0);
    assert_int_equal(emulated_driver.stream_synchronize(other), 0);
    assert_true(host[0] != 14.0f); /* nothing made it wait */
    CHECK_OK(ww_device_signal_stream(*state, other));
    assert_int_equal(emulated_driver.copy_out(other, host, made, sizeof got), 0);
    assert_int_equal(emulated_driver.stream_synchronize(other), 0);
    for (int i = 0; i < 6; i++)
        assert_true(host[i] == 14.0f);
    assert_int_equal(emulated_driver.fill32(other, made, 0x3f800000u, 6), 0);
    CHECK_OK(ww_device_wait_stream(*state, other));
    CHECK_OK(ww_tensor_to_host(&y, got));
    assert_true(got[3] == 1.0f);
    CHECK_OK(ww_device_wait_stream(*state, NULL)); /* the default stream, which an emulated device does not have */
    assert_int_equal(emulated_driver.pinned_free(host), 0);
    assert_int_equal(emulated_driver.stream_destroy(other), 0);
    gpu_leave(device, previous);
    ww_tensor_release(&x);
    ww_tensor_release(&y);
    ww_tensor_release(&owner);
    assert_int_equal(released, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_memory_does_not_go_to_the_pool),
        cmocka_unit_test(wrapped_memory_is_used_in_place),
        cmocka_unit_test(an_owner_is_notified_when_all_work_is_done),
        cmocka_unit_test(memory_that_cannot_be_wrapped_is_refused),
        cmocka_unit_test(read_only_memory_is_not_written),
        cmocka_unit_test(every_type_goes_there_and_back),
        cmocka_unit_test(offsets_and_missing_strides_are_honoured),
        cmocka_unit_test(imports_that_do_not_fit_are_refused),
        cmocka_unit_test(host_memory_of_other_kinds_is_the_hosts),
        cmocka_unit_test(an_export_outlives_everything_else),
        cmocka_unit_test(a_capsule_deletes_an_export_that_nobody_has_imported),
        cmocka_unit_test(streams_wait_for_each_other),
    };
    return RUN_ON_EVERY_DEVICE("foreign memory", tests);
}
