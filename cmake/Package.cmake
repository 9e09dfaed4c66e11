# What `make package` makes: three Debian packages, each from a component of cmake/Install.cmake, and one archive with everything.
set(CPACK_GENERATOR DEB TZST)
set(CPACK_PACKAGE_NAME warpwave)
set(CPACK_PACKAGE_VENDOR "The Warpwave developers")
set(CPACK_PACKAGE_CONTACT "The Warpwave developers <warpwave@localhost>")
file(STRINGS ${CMAKE_SOURCE_DIR}/CITATION.cff repository_line REGEX "^repository-code: ")
if(repository_line MATCHES "(https://[^ \"]+)")
    set(CPACK_PACKAGE_HOMEPAGE_URL ${CMAKE_MATCH_1})
endif()
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME warpwave-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development command)
if(WARPWAVE_MPIS)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_NAME warpwave-mpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
    set(CPACK_COMPONENT_MPI_DESCRIPTION "Exact vector search and tensors on CPUs and GPUs: over MPI ranks
The library libwarpwave_mpi and the command warpwave-mpi: searches, graphs of
nearest neighbours and deduplication over many machines, with the bits of one.")
    set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "libwarpwave${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} (= ${PROJECT_VERSION})")
endif()

set(library_package libwarpwave${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Exact vector search and tensors on CPUs and GPUs: the library
Searches vectors and computes with tensors, plain and quantized, on CPUs,
NVIDIA and AMD GPUs, with the same bits on all of them. Drivers are found at
run time.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libwarpwave-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library_package} (= ${PROJECT_VERSION}), libjansson-dev, libzstd-dev, libsqlite3-dev, libpcre2-dev, libutf8proc-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Exact vector search and tensors on CPUs and GPUs: development files
Headers, the static library, and what pkg-config and CMake need to find
libwarpwave.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME warpwave)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "Exact vector search and tensors on CPUs and GPUs: the command
Searches files of vectors, keeps collections in SQLite files, runs models,
serves both over HTTP, and converts and quantizes GGUF files.")
# Which libraries they need is dpkg-shlibdeps' to say (Debian: dpkg-dev); without it they name the two that are known.
find_program(dpkg_shlibdeps dpkg-shlibdeps NO_CACHE)
if(dpkg_shlibdeps)
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}) # libwarpwave, of another of these packages
else()
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libc6, libjansson4, libpcre2-8-0, libsqlite3-0, libutf8proc2, libzstd1")
    set(CPACK_DEBIAN_COMMAND_PACKAGE_DEPENDS "libc6, libjansson4, libpcre2-8-0, libsqlite3-0, libutf8proc2, libzstd1")
endif()
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
# dpkg renews the loader's list when the library comes or goes.
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/triggers)

# Debian wants the licence of each package in a folder of its name; a plain install has it once.
foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} upper)
    install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}
            RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
