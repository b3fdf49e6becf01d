(* Reads lines of a sampler's name, its parameters and words, in hexadecimal, and writes what the
   model returns and how many words it has used, or "none". *)
module Int = Z (* zarith's: the model has a Z of its own *)
open Model

let number text = Int.of_string ("0x" ^ text)
let text z = Int.format "%x" z

let rec nat n = if n = 0 then O else S (nat (n - 1))
let fuel = nat 64

let rec run program words used = match program, words with
  | Ret a, _ -> Some (a, used)
  | Fail, _ | _, [] -> None
  | Word next, w :: words -> run (next w) words (used + 1)

let answer show program words = match run program words 0 with
  | Some (a, used) -> Printf.printf "%s %d\n" (show a) used
  | None -> print_endline "none"

let () =
  try
    while true do
      match String.split_on_char ' ' (input_line stdin) with
      | name :: num :: den :: words ->
        let num = number num and den = number den and words = List.map number words in
        (match name with
         | "bernoulli_exp" -> answer string_of_bool (run_bernoulli_exp fuel num den) words
         | "geometric" -> answer (fun (x, _) -> text x) (run_geometric fuel num den) words
         | "laplace" -> answer text (run_laplace fuel num den) words
         | "digits" -> (* of e^{-num}, with den words more *)
           Printf.printf "%s 0\n" (text (found (nat (Int.to_int num)) (nat (Int.to_int den))))
         | _ -> failwith name)
      | _ -> failwith "a line has a name and two parameters"
    done
  with End_of_file -> ()
