# cmake -DBUILD=… -DWORK=… -DGENERATOR=… -P package.cmake: installs a build into WORK/prefix, builds the
# project in Inputs/ against it in both documented ways, runs it and asks assay what it saw.

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect what text)
  if(NOT output MATCHES "${text}")
    message(FATAL_ERROR "${what}: no \"${text}\" in\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
set(assay ${WORK}/prefix/bin/assay)
set(inputs ${CMAKE_CURRENT_LIST_DIR}/Inputs)

# find_package and assay_instrument
run(${CMAKE_COMMAND} -S ${inputs} -B ${WORK}/targets -G ${GENERATOR} -DAssay_DIR=${WORK}/prefix/lib/cmake/Assay -DWITH_PACKAGE=ON)
run(${CMAKE_COMMAND} --build ${WORK}/targets)
run(${assay} run -o ${WORK}/profiles -- ${WORK}/targets/profiled)
run(${assay} heap ${WORK}/profiles --no-stacks)
expect("allocations of an instrumented program and library" "make_numbers")
run(${assay} run -o ${WORK}/none -- ${WORK}/targets/plain)
expect("a target that is not instrumented" "wrote no profile")

# gcc's archiver does not know clang's code
run(${CMAKE_COMMAND} -S ${inputs} -B ${WORK}/ipo -G ${GENERATOR} -DAssay_DIR=${WORK}/prefix/lib/cmake/Assay -DWITH_PACKAGE=ON
    -DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ -DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
    -DCMAKE_INTERPROCEDURAL_OPTIMIZATION_RELEASE=ON)
expect("interprocedural optimisation by gcc" "static_numbers is built without INTERPROCEDURAL_OPTIMIZATION")
run(${CMAKE_COMMAND} --build ${WORK}/ipo)
run(${assay} run -o ${WORK}/ipo-profiles -- ${WORK}/ipo/profiled_static)
run(${assay} heap ${WORK}/ipo-profiles --no-stacks)
expect("a static library beside others that gcc optimises" "make_numbers")

# toolchain file
run(${CMAKE_COMMAND} -S ${inputs} -B ${WORK}/whole -G ${GENERATOR} -DCMAKE_TOOLCHAIN_FILE=${WORK}/prefix/lib/cmake/Assay/toolchain.cmake)
run(${CMAKE_COMMAND} --build ${WORK}/whole)
run(${assay} run -o ${WORK}/whole-profiles -- ${WORK}/whole/plain)
run(${assay} heap ${WORK}/whole-profiles --no-stacks)
expect("a whole project" "make_numbers")
