# Flags shared by every target, and the two helpers that declare one: sluice_library (a folder of
# src/) and sluice_test (a GoogleTest program registered with ctest).

find_package(Threads REQUIRED)

# The law's arithmetic (docs/FORMAT.md): a product and a sum fuse only where the code says fma.
add_compile_options(-Wall -Wextra -Wconversion -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
else()
  add_compile_options(-Wno-restrict)  # g++ 12 reports `"literal" + std::string` (GCC PR 105329)
endif()
if(SLUICE_SANITIZE)
  add_compile_options(-fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SLUICE_SANITIZE})
endif()

# sluice_library(NAME LIBS SOURCES...): static library sluice_NAME. LIBS is a quoted list of the
# folders (and third-party targets) it may include, as contracts.md section 7 allows.
function(sluice_library name libs)
  add_library(sluice_${name} STATIC ${ARGN})
  target_include_directories(sluice_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(sluice_${name} PUBLIC ${libs} Threads::Threads)
endfunction()

# sluice_test(NAME LABEL LIBS SOURCES...): a GoogleTest program; each of its tests becomes a ctest.
function(sluice_test name label libs)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${libs} GTest::gtest GTest::gtest_main)
  gtest_discover_tests(${name} PROPERTIES LABELS ${label} TIMEOUT 600 DISCOVERY_TIMEOUT 60)
endfunction()
