# What `make install` puts where: headers, both libraries, the command with its man page, completion and demo data, and the two ways other
# builds find the library, pkg-config and a CMake package. Both say where things are relative to themselves, so that the tree
# can be installed with DESTDIR, with another --prefix than it was configured for, or moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/warpwave)
set(installed_libraries warpwave)
if(TARGET warpwave_static)
    list(APPEND installed_libraries warpwave_static)
endif()

install(TARGETS ${installed_libraries} EXPORT warpwave_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
# SQLite finds its extension in the library by this name.
if(WARPWAVE_STORE)
    install(CODE "file(MAKE_DIRECTORY \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/warpwave\")
file(CREATE_LINK ../$<TARGET_SONAME_FILE_NAME:warpwave> \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/warpwave/warpwave.so\" SYMBOLIC)
list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/warpwave/warpwave.so\")" COMPONENT library)
endif()
install(TARGETS warpwave_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(FILES ${CMAKE_SOURCE_DIR}/include/warpwave.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/warpwave DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "cluster.h" EXCLUDE)
# The API reference, where `make docs` or `make package` wrote it.
install(FILES ${CMAKE_BINARY_DIR}/docs/api.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/data/digits.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/warpwave COMPONENT command)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
if(WARPWAVE_SERVER)
    install(FILES ${CMAKE_SOURCE_DIR}/data/warpwave.service DESTINATION lib/systemd/system COMPONENT command)
endif()
if(COMPLETIONS)
    list(GET COMPLETIONS 0 for_bash)
    list(GET COMPLETIONS 1 for_zsh)
    list(GET COMPLETIONS 2 for_fish)
    install(FILES ${for_bash} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME warpwave COMPONENT command)
    install(FILES ${for_zsh} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
    install(FILES ${for_fish} DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
endif()
if(MANUALS)
    install(FILES ${CMAKE_BINARY_DIR}/reference/warpwave.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
endif()

# What kernels of one's own are written with: the words of simt.h, and what those stand on.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/kernels/simt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpwave/simt/kernels COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/src/arithmetic/function.h ${CMAKE_SOURCE_DIR}/src/arithmetic/canon.h ${CMAKE_SOURCE_DIR}/src/arithmetic/root.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpwave/simt/arithmetic COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/OwnKernels.cmake DESTINATION ${package_dir} COMPONENT development)

# find_package(warpwave) gives warpwave::warpwave and warpwave::warpwave_static.
install(EXPORT warpwave_targets NAMESPACE warpwave:: FILE warpwave-targets.cmake DESTINATION ${package_dir}
        COMPONENT development)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/warpwave-config.cmake.in ${CMAKE_BINARY_DIR}/warpwave-config.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/warpwave-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/warpwave-config.cmake ${CMAKE_BINARY_DIR}/warpwave-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

# pkg-config: the prefix is said relative to the .pc file itself.
file(RELATIVE_PATH prefix_from_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
string(REPLACE ";" " " library_requires_text "${library_requires}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/warpwave.pc.in ${CMAKE_BINARY_DIR}/warpwave.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/warpwave.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
# Ranks are a component of their own, since they need an MPI: the first one's library and command under their plain names, those of others
# in a folder, and with the MPI's name behind the command's.
foreach(name ${WARPWAVE_MPIS})
    list(GET WARPWAVE_MPIS 0 mpi_first)
    if(name STREQUAL mpi_first)
        install(TARGETS warpwave_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
        configure_file(${CMAKE_SOURCE_DIR}/cmake/warpwave_mpi.pc.in ${CMAKE_BINARY_DIR}/warpwave_mpi.pc @ONLY)
        install(FILES ${CMAKE_BINARY_DIR}/warpwave_mpi.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT mpi)
        install(TARGETS warpwave_mpi_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
    else()
        install(TARGETS warpwave_mpi_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/warpwave/${name} COMPONENT mpi)
        install(PROGRAMS $<TARGET_FILE:warpwave_mpi_command_${name}> DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME warpwave-mpi.${name} COMPONENT mpi)
    endif()
endforeach()
if(WARPWAVE_MPIS)
    install(FILES ${CMAKE_SOURCE_DIR}/include/warpwave/cluster.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpwave COMPONENT mpi)
    if(MANUALS)
        install(FILES ${CMAKE_BINARY_DIR}/reference/warpwave-mpi.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT mpi)
    endif()
endif()
