/* emulated_switch(void **from, void *to): keeps what a call must preserve on this stack, leaves the stack's top in *from, and goes
 * on where the stack `to` was left. emulated_begin is where a fresh stack starts: it calls the function in one preserved
 * register with the argument in another. Floating-point modes are not switched: nothing in the emulator changes them.
 * It goes on by a jump: a return would go elsewhere than the processor foretells from the calls, each time. */
#if defined(__x86_64__)
    .text
    .globl emulated_switch
    .hidden emulated_switch
    .type emulated_switch, @function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmpq *%rcx
    .size emulated_switch, . - emulated_switch

    .globl emulated_begin
    .hidden emulated_begin
    .type emulated_begin, @function
emulated_begin:
    .cfi_startproc
    .cfi_undefined rip
    movq %r12, %rdi
    callq *%r13
    ud2
    .cfi_endproc
    .size emulated_begin, . - emulated_begin

#elif defined(__aarch64__)
    .text
    .globl emulated_switch
    .hidden emulated_switch
    .type emulated_switch, %function
emulated_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    br x30
    .size emulated_switch, . - emulated_switch

    .globl emulated_begin
    .hidden emulated_begin
    .type emulated_begin, %function
emulated_begin:
    .cfi_startproc
    .cfi_undefined x30
    mov x0, x19
    blr x20
    brk #0
    .cfi_endproc
    .size emulated_begin, . - emulated_begin
#endif

    .section .note.GNU-stack, "", %progbits
