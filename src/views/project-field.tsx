// The field that chooses a project: one look and one spelling of names in every form that has it.
/** @jsxImportSource #jsx */
import { SelectField } from "./ui/form.tsx";
import { visible } from "./ui/untrusted.tsx";

type ProjectFieldProps = {
  id: string;
  name: string;
  label?: string;
  /** Names of the projects to choose from. */
  projects: readonly string[];
  /** An option before them, such as all projects together. */
  first?: { value: string; text: string } | undefined;
  value?: string | undefined;
  error?: string | undefined;
};

/** Chooses one of some projects. Whoever named a project may have hidden something in its name: that is marked. */
export const ProjectField = ({ id, name, label = "Project", projects, first, value, error }: ProjectFieldProps) => (
  <SelectField
    id={id}
    name={name}
    label={label}
    options={[...(first ? [first] : []), ...projects.map((project) => ({ value: project, text: visible(project) }))]}
    {...(value !== undefined && { value })}
    {...(error !== undefined && { error })}
  />
);
