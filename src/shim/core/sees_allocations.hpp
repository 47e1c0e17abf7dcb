// Whether operator new is the shim's own. Header only.
#pragma once

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
// Clang's ThreadSanitizer defines an operator new that is not weak (tsan_new_delete.cpp, LLVM 14
// and 16), so allocations are neither counted nor failed there.
#define IBVXX_SHIM_SEES_ALLOCATIONS 0
#endif
#endif
#ifndef IBVXX_SHIM_SEES_ALLOCATIONS
#define IBVXX_SHIM_SEES_ALLOCATIONS 1
#endif
