! One step of a shallow-water model: the loop nest of the paper's slides (calc1 of 312.swim).
module fields
  integer, parameter :: n1 = 514, n2 = 514
  double precision :: u(n1, n2), v(n1, n2), p(n1, n2)
  double precision :: cu(n1, n2), cv(n1, n2), z(n1, n2), h(n1, n2)
end module

subroutine calc1(m, n, fsdx, fsdy)
  use fields
  integer :: m, n, i, j
  double precision :: fsdx, fsdy
  do j = 1, n
    do i = 1, m
      cu(i + 1, j) = .5d0 * (p(i + 1, j) + p(i, j)) * u(i + 1, j)
      cv(i, j + 1) = .5d0 * (p(i, j + 1) + p(i, j)) * v(i, j + 1)
      z(i + 1, j + 1) = (fsdx * (v(i + 1, j + 1) - v(i, j + 1)) - fsdy * (u(i + 1, j + 1) - u(i + 1, j))) &
                        / (p(i, j) + p(i + 1, j) + p(i + 1, j + 1) + p(i, j + 1))
      h(i, j) = p(i, j) + .25d0 * (u(i + 1, j) * u(i + 1, j) + u(i, j) * u(i, j) &
                + v(i, j + 1) * v(i, j + 1) + v(i, j) * v(i, j))
    end do
  end do
end subroutine

program main
  use fields
  do j = 1, n2
    do i = 1, n1
      p(i, j) = 50000 + i + j
      u(i, j) = i - j
      v(i, j) = j - i
    end do
  end do
  call calc1(512, 512, 4d0 / 1d5, 4d0 / 1d5)
  print '(4g12.5)', cu(11, 10), cv(10, 11), z(11, 11), h(10, 10)
end program
