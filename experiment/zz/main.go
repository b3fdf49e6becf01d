package main
import ("context";"fmt";"os";"time";"github.com/sotto-dp/sotto/experiment")
func main(){ s,err:=experiment.Read(os.Args[1]); if err!=nil {fmt.Println(err);os.Exit(2)}
 for i:=3;i+1<len(os.Args);i+=2 { if err:=s.Override(os.Args[i],"--"+os.Args[i],os.Args[i+1]);err!=nil{fmt.Println(err);os.Exit(2)} }
 t:=time.Now(); r,err:=experiment.Run(context.Background(),s,experiment.Options{Out:os.Args[2],Resume:true,Progress: func(p experiment.Step){ if p.CellDone==p.CellTotal {fmt.Println(p)} }}); if err!=nil {fmt.Println(err);os.Exit(1)}
 fmt.Println(time.Since(t)); c,err:=r.Compare(); if err!=nil {fmt.Println(err)}
 for _,x:=range c { fmt.Printf("%-50s %10.1f ± %8.1f ratio %.2f diff %.1f±%.1f p=%.2g sig=%v loss=%s\n",x.Label(),x.Mean,x.Half,x.Ratio,x.Difference,x.DifferenceHalf,x.P,x.Significant,x.Loss)}
 for _,w:=range r.Manifest.Warnings {fmt.Println("warning:",w)}
}
