import { PageHeader } from "./page-header.tsx";

export function Stub({ title }: { readonly title: string }) {
  return <PageHeader title={title} />;
}
