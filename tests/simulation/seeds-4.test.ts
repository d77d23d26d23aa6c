// One share of the seeds of R17; share.ts says which and what for.
import { playShare } from "./share.ts";

playShare(4);
