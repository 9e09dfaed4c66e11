/* The loops of element_loops_template.h for one kind, which includes this once for each.
 *
 * T is the kind's C type and OF(name) appends it to a name. f32 and f64 define FLOAT_KIND, and FAR(name), the test for
 * arguments for which a function has a slow branch. f64 and i64 define ODD_F32(x): x as an f32 rounded to odd, from which f16
 * is rounded once.
 */

/* ---- to any type --------------------------------------------------------------------------------------------------------- */

/* NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses */
#define NARROW(NAME, name, bits, kind)                                                                                         \
    case TYPE_##NAME: {                                                                                                        \
        bits *y = to;                                                                                                          \
        LOOP y[i] = OF(name##_of)(from[i]);                                                                                    \
        break;                                                                                                                 \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static void OF(loop_narrow)(int32_t type, void *restrict to, const T *restrict from, int64_t count)
{
    if (type == TYPE_F16) { /* with the set's own instructions */
#ifdef ODD_F32
        float odd[LOOP_BLOCK];
        LOOP odd[i] = ODD_F32(from[i]);
        narrow_f16_many(to, odd, count);
#else
        narrow_f16_many(to, from, count);
#endif
        return;
    }
    switch (type) {
        TYPES(NARROW)
    default:
        break;
    }
}
#undef NARROW

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

#ifdef FLOAT_KIND
#define VALUE(floats, integers) OF(one_nan)(floats)
#define F(name)                 OF(canon_##name)
#else
#define VALUE(floats, integers) integers
#endif
#define UNARY(NAME, name, floats, integers, which)      ONE_CASE(UNARY_##NAME, VALUE(floats, integers))
#define PARAMETRIC(NAME, name, floats, integers, which) ONE_CASE(UNARY_##NAME, VALUE(floats, integers))
#define BINARY(NAME, name, floats, integers, which)     TWO_CASE(BINARY_##NAME, VALUE(floats, integers))

static void OF(loop_unary)(int32_t op, T *restrict to, const T *restrict in, int64_t count, T a, T b)
{
#ifdef FLOAT_KIND
    switch (op) {
        FAR_CASE(UNARY_SIN, OF(one_nan)(OF(canon_sin_near)(in[i])), FAR(SIN)(in[i]), OF(one_nan)(OF(canon_sin)(in[i])))
        FAR_CASE(UNARY_COS, OF(one_nan)(OF(canon_cos_near)(in[i])), FAR(SIN)(in[i]), OF(one_nan)(OF(canon_cos)(in[i])))
    default:
        break;
    }
#endif
    switch (op) {
#include "arithmetic/parametric.def"
#include "arithmetic/unary.def"
    default:
        break;
    }
}

static void OF(loop_binary)(int32_t op, T *restrict to, const T *restrict left, const T *restrict right, int64_t count)
{
#ifdef FLOAT_KIND
    switch (op) {
        FAR_CASE(BINARY_REM, OF(one_nan)(OF(canon_rem_near)(left[i], right[i])), FAR(REM)(left[i], right[i]),
                 OF(one_nan)(OF(canon_rem)(left[i], right[i])))
    default:
        break;
    }
#endif
    switch (op) {
#include "arithmetic/binary.def"
    default:
        break;
    }
}
#undef UNARY
#undef PARAMETRIC
#undef BINARY
#undef VALUE
#undef F

#define CMP_CASE(OP, operator)                                                                                                 \
    case OP:                                                                                                                   \
        LOOP to[i] = left[i] operator right[i];                                                                                \
        break;
static void OF(loop_cmp)(int32_t op, uint8_t *restrict to, const T *left, const T *right, int64_t count)
{
    switch (op) {
        CMP_CASE(CMP_EQ, ==)
        CMP_CASE(CMP_NE, !=)
        CMP_CASE(CMP_LT, <)
        CMP_CASE(CMP_LE, <=)
        CMP_CASE(CMP_GT, >)
        CMP_CASE(CMP_GE, >=)
    default:
        break;
    }
}
#undef CMP_CASE
