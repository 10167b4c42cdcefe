// Launches of a call, recorded by CUPTI's callbacks on the driver's functions.
#pragma once

#include <Python.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

// The driver's structs, as in cuda.h.
struct Attribute {
  int id;
  char padding[4];
  char value[64];
};
struct Config {
  unsigned grid[3], block[3], shared;
  void* stream;
  Attribute* attributes;
  unsigned count;
};
struct PlainLaunch {  // parameters of cuLaunchKernel, and without `extra` of cuLaunchCooperativeKernel
  void* function;
  unsigned grid[3], block[3], shared;
  void* stream;
  void** arguments;
  void** extra;
};
struct ConfiguredLaunch {  // parameters of cuLaunchKernelEx
  const Config* config;
  void* function;
  void** arguments;
  void** extra;
};
struct CallbackData {  // CUPTI's
  int site;
  const char* function;
  const void* parameters;
};
static_assert(sizeof(Attribute) == 72 && sizeof(Config) == 56 && sizeof(PlainLaunch) == 64);

using Callback = void (*)(void*, int, unsigned, const CallbackData*);
struct {
  int (*launch)(const Config*, void*, void**, void**) = nullptr;
  int (*function_parameter)(void*, size_t, size_t*, size_t*) = nullptr;
  int (*kernel_parameter)(void*, size_t, size_t*, size_t*) = nullptr;
  int (*pointer_attribute)(void*, int, unsigned long long) = nullptr;
  int (*subscribe)(void**, Callback, void*) = nullptr;
  int (*unsubscribe)(void*) = nullptr;
  int (*enable)(unsigned, void*, int) = nullptr;
} driver;

constexpr int kCooperative = 2;  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
constexpr int kMemoryType = 2;   // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int kDriverCalls = 1;  // CUPTI_CB_DOMAIN_DRIVER_API

struct Event {
  std::string name;
  std::string problem;
  void* function = nullptr;
  Config config{};
  std::vector<Attribute> attributes;
  std::string parameters;
  std::vector<size_t> offsets;
  bool is_launch = false;
};

struct {
  void* subscriber = nullptr;
  bool active = false;
  std::vector<Event> events;
} recorder;
thread_local bool recorded_thread = false;  // a launch by another thread is not the version's

void copy_arguments(Event& event, void* function, void** arguments, void** extra) {
  if (extra != nullptr || arguments == nullptr) {
    size_t offset, size;
    if (extra == nullptr && driver.function_parameter(function, 0, &offset, &size) != 0) return;  // it takes none
    event.problem = "its arguments come in one buffer";
    return;
  }
  auto ask = driver.function_parameter;
  size_t offset = 0, size = 0;
  if (ask(function, 0, &offset, &size) != 0) ask = driver.kernel_parameter;
  for (size_t i = 0; i < 256 && ask(function, i, &offset, &size) == 0; ++i) {
    if (event.parameters.size() < offset + size) event.parameters.resize(offset + size, 0);
    std::memcpy(event.parameters.data() + offset, arguments[i], size);
    event.offsets.push_back(offset);
  }
  if (event.offsets.empty()) event.problem = "the driver does not say what its parameters are";
}

void on_driver_call(void*, int, unsigned, const CallbackData* call) {
  if (!recorded_thread || !recorder.active || call->site != 0) return;
  recorder.active = false;  // what is asked of the driver here is no call of the version
  Event event;
  event.name = call->function;
  const std::string plain = event.name.substr(0, event.name.find("_ptsz"));
  if (plain == "cuLaunchKernel" || plain == "cuLaunchCooperativeKernel") {
    const auto& launch = *static_cast<const PlainLaunch*>(call->parameters);
    event.is_launch = true;
    event.function = launch.function;
    std::memcpy(&event.config, launch.grid, 7 * sizeof(unsigned));
    event.config.stream = launch.stream;
    const bool cooperative = plain == "cuLaunchCooperativeKernel";
    if (cooperative) {
      Attribute attribute{};
      attribute.id = kCooperative;
      attribute.value[0] = 1;
      event.attributes.push_back(attribute);
    }
    copy_arguments(event, launch.function, launch.arguments, cooperative ? nullptr : launch.extra);
  } else if (plain == "cuLaunchKernelEx") {
    const auto& launch = *static_cast<const ConfiguredLaunch*>(call->parameters);
    event.is_launch = true;
    event.function = launch.function;
    event.config = *launch.config;
    if (launch.config->count)
      event.attributes.assign(launch.config->attributes, launch.config->attributes + launch.config->count);
    copy_arguments(event, launch.function, launch.arguments, launch.extra);
  }
  recorder.events.push_back(std::move(event));
  recorder.active = true;
}

PyObject* start_recording(PyObject*, PyObject*) {
  if (driver.subscribe == nullptr) Py_RETURN_FALSE;
  if (driver.subscribe(&recorder.subscriber, on_driver_call, nullptr) != 0) Py_RETURN_FALSE;  // a profiler runs
  recorder.events.clear();
  recorded_thread = true;
  if (driver.enable(1, recorder.subscriber, kDriverCalls) != 0) {
    driver.unsubscribe(recorder.subscriber);
    recorded_thread = false;
    Py_RETURN_FALSE;
  }
  recorder.active = true;
  Py_RETURN_TRUE;
}

PyObject* listen(PyObject*, PyObject* wanted) {
  recorder.active = PyObject_IsTrue(wanted);
  Py_RETURN_NONE;
}

PyObject* stop_recording(PyObject*, PyObject*) {
  recorder.active = recorded_thread = false;
  driver.enable(0, recorder.subscriber, kDriverCalls);
  driver.unsubscribe(recorder.subscriber);
  PyObject* events = PyList_New(0);
  for (const Event& event : recorder.events) {
    PyObject* item;
    if (!event.is_launch) {
      item = Py_BuildValue("(s)", event.name.c_str());
    } else {
      PyObject* offsets = PyTuple_New(event.offsets.size());
      for (size_t i = 0; i < event.offsets.size(); ++i)
        PyTuple_SET_ITEM(offsets, i, PyLong_FromSize_t(event.offsets[i]));
      const Config& c = event.config;
      std::string attributes(event.attributes.size() * sizeof(Attribute), 0);
      if (!attributes.empty()) std::memcpy(attributes.data(), event.attributes.data(), attributes.size());
      item = Py_BuildValue(
        "(ssK(IIIIII)IKy#y#N)", event.name.c_str(), event.problem.c_str(), (unsigned long long)event.function,
        c.grid[0], c.grid[1], c.grid[2], c.block[0], c.block[1], c.block[2], c.shared, (unsigned long long)c.stream,
        attributes.data(), static_cast<Py_ssize_t>(attributes.size()), event.parameters.data(),
        static_cast<Py_ssize_t>(event.parameters.size()), offsets
      );
    }
    if (item == nullptr || PyList_Append(events, item) != 0) return nullptr;
    Py_DECREF(item);
  }
  recorder.events.clear();
  return events;
}

PyObject* is_device_pointer(PyObject*, PyObject* value) {
  const unsigned long long address = PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred()) return nullptr;
  unsigned kind = 0;
  return PyBool_FromLong(driver.pointer_attribute(&kind, kMemoryType, address) == 0);
}

PyObject* connect(PyObject*, PyObject* arguments) {
  unsigned long long a[7];
  if (!PyArg_ParseTuple(arguments, "KKKKKKK", a, a + 1, a + 2, a + 3, a + 4, a + 5, a + 6)) return nullptr;
  std::memcpy(&driver, a, sizeof driver);
  static_assert(sizeof driver == sizeof a);
  Py_RETURN_NONE;
}

}  // namespace
