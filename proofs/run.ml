(* Reads lines of a sampler's name, its parameters and words, in hexadecimal, and writes what the
   model returns and how many words it has used, or "none". *)
open Model

(* Numbers of Coq from hexadecimal digits, and in decimal. *)
let of_bits bits =
  List.fold_left (fun z bit -> match z, bit with
    | Z0, false -> Z0
    | Z0, true -> Zpos XH
    | Zpos p, false -> Zpos (XO p)
    | Zpos p, true -> Zpos (XI p)
    | Zneg _, _ -> assert false) Z0 bits

let number text =
  of_bits (List.concat_map (fun c ->
    let d = int_of_string ("0x" ^ String.make 1 c) in
    List.map (fun i -> d lsr i land 1 = 1) [3; 2; 1; 0]) (List.of_seq (String.to_seq text)))

let rec hex_of = function
  | XH -> [true]
  | XO p -> false :: hex_of p
  | XI p -> true :: hex_of p

let text z =
  let digits p =
    let rec four = function
      | [] -> ""
      | a :: b :: c :: d :: rest -> four rest ^ value [a; b; c; d]
      | rest -> value rest
    and value bits = Printf.sprintf "%x" (List.fold_right (fun b n -> 2 * n + Bool.to_int b) bits 0) in
    four (hex_of p) in
  match z with Z0 -> "0" | Zpos p -> digits p | Zneg p -> "-" ^ digits p

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
         | "bernoulli_exp" -> answer (function True -> "true" | False -> "false") (run_bernoulli_exp fuel num den) words
         | "geometric" -> answer (fun (Pair (x, _)) -> text x) (run_geometric fuel num den) words
         | "laplace" -> answer text (run_laplace fuel num den) words
         | "digits" -> (* of e^{-num}, with den words more *)
           let count z = List.fold_left (fun n b -> 2 * n + Bool.to_int b) 0
             (match z with Zpos p -> List.rev (hex_of p) | _ -> []) in
           Printf.printf "%s 0\n" (text (found (nat (count num)) (nat (count den))))
         | _ -> failwith name)
      | _ -> failwith "a line has a name and two parameters"
    done
  with End_of_file -> ()
