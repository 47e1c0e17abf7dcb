// Catch2, whichever generation is installed: 3.x or 2.13.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_all.hpp>
#else
#ifndef CATCH_CONFIG_FAST_COMPILE
#define CATCH_CONFIG_FAST_COMPILE  // compiling is what the tests take their time for
#endif
#include <catch2/catch.hpp>
#endif
