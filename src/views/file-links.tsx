// A list as a file: the two links below it, and how many rows a file has.
/** @jsxImportSource #jsx */
import { withQuery } from "./address.ts";
import { Link } from "./ui/reference.tsx";

/** Rows of one file. A longer list is taken in parts: the file begins where the page that links to it begins. */
export const EXPORT_ROWS_MAX = 5_000;

/** The list that this address shows, as files. @param list its name in the address: `/runs/export/csv` */
export const FileLinks = ({ list, url }: { list: string; url: URL }) => {
  const file = (format: string) => withQuery(`/${list}/export/${format}`, url);
  return (
    <>
      as <Link href={file("csv")}>CSV</Link> or <Link href={file("json")}>JSON</Link>
    </>
  );
};
