import { Stub } from "../../ui/stub.tsx";

export function Page() {
  return <Stub title="companies" />;
}
