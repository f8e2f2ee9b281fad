-- Trees, strings, sorting and closures; the argument is the number of rounds.
local rounds = tonumber(arg and arg[1]) or 10

local function tree(depth)
  if depth == 0 then return { value = 1 } end
  return { left = tree(depth - 1), right = tree(depth - 1), value = depth }
end

local function sum(node)
  if not node.left then return node.value end
  return sum(node.left) + sum(node.right) + node.value
end

local total, words = 0, {}
for round = 1, rounds do
  total = total + sum(tree(10))
  for i = 1, 500 do words[i] = ("word-%d-%d"):format((i * 7919) % 1009, round) end
  table.sort(words)
  local count = {}
  for _, word in ipairs(words) do
    local key = word:sub(1, 7)
    count[key] = (count[key] or 0) + #word
  end
  local add = function(n) return function(m) return n + m end end
  for i = 1, 2000 do total = total + add(i)(round) end
  total = total + #table.concat(words, ",")
end
print(total)
