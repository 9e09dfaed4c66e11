/* What every assembler file begins with: its stack is not executable, and its code, if it has any, can be a target of indirect
 * jumps only where it says so. The linker marks a library for such protection only if every part of it has these notes. */
#ifndef WW_BASE_SYSTEM_ELF_NOTES_H
#define WW_BASE_SYSTEM_ELF_NOTES_H

// clang-format off
    .section .note.GNU-stack, "", %progbits
#if defined(__CET__)
    .section .note.gnu.property, "a", %note
    .balign 8
    .long 4, 16, 5          /* bytes of the name and of the property; the type is NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000002, 4, 3  /* GNU_PROPERTY_X86_FEATURE_1_AND: IBT and SHSTK */
    .balign 8
#elif defined(__ARM_FEATURE_BTI_DEFAULT)
    .section .note.gnu.property, "a", %note
    .balign 8
    .long 4, 16, 5
    .asciz "GNU"
    .long 0xc0000000, 4, 3  /* GNU_PROPERTY_AARCH64_FEATURE_1_AND: BTI and PAC */
    .balign 8
#endif
// clang-format on

#endif
