// Whether operator new is the shim's own.
#pragma once

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
// Clang's ThreadSanitizer links one that is not weak (tsan_new_delete.cpp, LLVM 14 and 16), so
// there allocations are neither seen nor failed.
#define IBVXX_SHIM_SEES_ALLOCATIONS 0
#endif
#endif
#ifndef IBVXX_SHIM_SEES_ALLOCATIONS
#define IBVXX_SHIM_SEES_ALLOCATIONS 1
#endif
