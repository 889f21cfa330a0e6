import { page } from "../../../chunks/page.tsx";

/** What draws is as large as a page, which is of use before anything is drawn. */
export const Chart = page(() =>
  import("../../../ui/chart/chart.tsx").then((file) => ({ Page: file.Chart })),
);
